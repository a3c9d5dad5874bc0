"""A monitor as a critic of agent runs: P(fail), its temperature, its step scores."""
