"""Several judges made one, from their finished runs: ensembles and cascades."""
