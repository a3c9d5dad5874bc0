"""The generator of reasoning problems with exactly known answers."""
