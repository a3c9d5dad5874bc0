"""Two judgements of the same samples: what fell, and what is shown not to have fallen."""
