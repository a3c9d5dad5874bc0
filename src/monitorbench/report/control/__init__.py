"""Views of a control evaluation: the table in 80 columns, the figures, the page."""
