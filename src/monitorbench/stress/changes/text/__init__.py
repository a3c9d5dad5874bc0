"""What stands in a judged text: fences, code, prose, and in prose what has to stay as it is spelled.

Judged text is hostile: each reader here goes through it once, whatever it holds.
"""
