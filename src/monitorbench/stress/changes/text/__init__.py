"""Readers of judged text: fences, code, prose, and the parts of prose that have to stay as spelled.

Judged text is hostile: each reader here goes through it once, whatever it holds.
"""
