"""How many examples a property draws: as many as it asks for in `make test-slow`, fewer in `make test`."""

from hypothesis import settings

FAST = 20
"""Examples of a property in `make test` that asks for no number."""


def draws(number: int) -> settings:
    """Draw `number` examples in `make test-slow`; in `make test` half of them, and at most `FAST`."""
    is_fast = settings().max_examples == FAST
    return settings(max_examples=min(FAST, number // 2) if is_fast else number)
