"""Other people's formats: their scores in, ours out."""
