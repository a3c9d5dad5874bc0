"""What a pilot's outcomes say: rates, intervals, tests and the decision, from matched runs alone."""
