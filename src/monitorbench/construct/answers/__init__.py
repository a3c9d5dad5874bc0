"""Pairs of free-text answers: preferences, labelled responses, capitulations, incentives."""
