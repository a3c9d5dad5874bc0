"""Makes what the parts of this room share importable from each of them, such as `corridor`."""
