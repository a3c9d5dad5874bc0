"""Misleading cues and incentives: their wording, and the counterfactual filter."""
