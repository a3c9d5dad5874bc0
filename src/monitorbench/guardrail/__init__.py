"""A calibrated monitor as a service: flag or pass for a request and a response, at its threshold."""
