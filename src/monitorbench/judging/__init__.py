"""The judges: one interface to local models, endpoints and servers."""
