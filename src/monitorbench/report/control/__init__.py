"""What a control evaluation looks like: the table in 80 columns, the figures, the page."""
