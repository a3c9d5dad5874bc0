"""Choose a monitor and its threshold by expected cost, and say what the choice is worth."""
