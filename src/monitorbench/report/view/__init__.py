"""`monitorbench view`: all runs of a folder on one page of this machine, read-only."""
