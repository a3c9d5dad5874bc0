"""The pilot: matched runs with and without intervention, and what they say about switching it on."""
