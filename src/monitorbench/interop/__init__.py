"""Other people's formats and frameworks, both ways: Inspect logs and scorers."""
