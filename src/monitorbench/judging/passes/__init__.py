"""Prompts that ask a model twice: its evidence, its list or its numbers, and what stands behind them."""
