"""Labels for traffic that has scores alone: which to ask for, and what a few of them say."""
