"""Conversations as other people write them, read as messages: the one place where their forms are known."""
