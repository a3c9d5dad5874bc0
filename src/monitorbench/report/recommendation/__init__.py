"""Show the recommendation to a reader: its sentence, its figure, its page."""
