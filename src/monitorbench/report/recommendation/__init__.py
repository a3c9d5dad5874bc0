"""The recommendation for a reader: its sentence, its figure, its page."""
