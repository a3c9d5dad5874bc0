"""The probe as a study: which trainings and evaluations it is made of, and finding or making them."""
