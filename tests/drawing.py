"""How many examples a property draws: as many as it asks for in `make test-slow`, fewer in `make test`."""

from hypothesis import settings

FAST = 12
"""Examples of a property in `make test` that asks for no number."""


def draws(number: int, fast: int = FAST) -> settings:
    """Draw `number` examples in `make test-slow`; in `make test` half of them, and at most `fast`."""
    is_fast = settings().max_examples == FAST
    return settings(max_examples=min(fast, number // 2) if is_fast else number)
