"""The report of a pilot: what was decided, the numbers behind it, and every run that changed its outcome."""
