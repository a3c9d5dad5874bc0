"""Pairs of code: secure and insecure versions, and solutions that special-case the tests."""
