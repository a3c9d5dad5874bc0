"""All settings: their models, how they are read, and how a process that reads them ends."""
