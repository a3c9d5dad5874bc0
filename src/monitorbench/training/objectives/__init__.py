"""What a monitor is fine-tuned towards: one file per objective, and the list of them in `known`."""
