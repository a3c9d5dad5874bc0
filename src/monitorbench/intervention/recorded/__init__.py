"""Runs that somebody else recorded: one file per set, its raw files to outcomes or marked runs, nothing else.

The files hold code and text that models wrote. None of it is ever executed: the recorded verdict counts.
"""
