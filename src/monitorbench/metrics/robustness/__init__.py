"""What changes that keep the label do to a monitor: paired differences, corrected, and the worst of them."""
