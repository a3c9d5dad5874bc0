"""Studies: many runs made, found, planned and laid side by side to answer one question."""
