"""The one check that an adapter is on its model, for training and for judging."""

import math

import pytest

from monitorbench.config.base import UserError
from monitorbench.engines.open import ADAPTER_GATE, refuse_idle_adapter


def test_the_largest_change_is_what_counts():
    """An adapter that moves one label alone is one; the change is what the manifest reports."""
    assert refuse_idle_adapter([-1.0, -2.5, -3.0], [-1.0, -2.0, -3.1]) == pytest.approx(0.5)
    assert refuse_idle_adapter([-1.0, -9.0], [-1.0 - 2 * ADAPTER_GATE, -math.inf]) == pytest.approx(
        2 * ADAPTER_GATE
    )


@pytest.mark.parametrize(
    ("tuned", "base", "says"),
    [
        ([-1.0, -2.0], [-1.0, -2.0], "changes no log-probability"),
        ([-1.0], [-1.0 - ADAPTER_GATE / 2], "changes no log-probability"),
        ([-5.0], [-math.inf], "changes no log-probability"),
        ([], [], "changes no log-probability"),
        ([math.nan, -2.0], [-1.0, -2.0], "broken"),
        ([-math.inf, -2.0], [-1.0, -1.0], "broken"),
    ],
)
def test_an_idle_or_broken_adapter_is_refused(tuned: list[float], base: list[float], says: str):
    """The base's numbers, or NaN, would stand under the adapter's name."""
    with pytest.raises(UserError, match=says):
        refuse_idle_adapter(tuned, base)
