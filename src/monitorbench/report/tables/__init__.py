"""The report's tables and how their numbers are written."""
