"""The changes: pure functions from a sample to the same sample in another form; `all.py` lists them."""
