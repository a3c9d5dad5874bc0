"""Somebody else's scores as a dataset and evaluation runs: `monitorbench import`."""
