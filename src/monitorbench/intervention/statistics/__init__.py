"""Statistics of a pilot's outcomes: rates, intervals, tests and the decision, from matched runs alone."""
