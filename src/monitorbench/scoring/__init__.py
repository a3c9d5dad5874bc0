"""Verdicts to metrics, thresholds and combinations; no model is run here."""
