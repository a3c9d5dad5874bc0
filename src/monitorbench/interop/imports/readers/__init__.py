"""A file of scores as a table, a module a format."""
