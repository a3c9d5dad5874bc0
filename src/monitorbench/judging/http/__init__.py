"""The HTTP server that judging servers of this process stand on."""
