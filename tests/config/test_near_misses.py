"""What is suggested in the place of a mistyped name, and when nothing is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies import study

from monitorbench.config.base import ConfigError
from monitorbench.config.load import did_you_mean

NAMES = ["direct", "direct_few_shot", "evidence", "evidence_few_shot"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("dirrect", "direct"), ("evidnce", "evidence"), ("direct_fewshot", "direct_few_shot"), ("xyz", "")],
)
def test_the_nearest_name_is_suggested(given: str, meant: str):
    """A far-fetched name is worse than none."""
    assert did_you_mean(given, NAMES, "prompt=") == (f"did you mean prompt={meant}?" if meant else "")


@given(st.text(max_size=20), st.lists(st.text(min_size=1, max_size=20), max_size=5))
def test_only_known_names_are_suggested(given: str, known: list[str]):
    """A suggestion that is refused in turn."""
    said = did_you_mean(given, known)
    assert said == "" or said.removeprefix("did you mean ").removesuffix("?") in known


def test_a_number_out_of_range_is_no_name():
    """`did you mean` behind a learning rate would be nonsense."""
    for override in ("seed=-1", "training.learning_rate=-1", "calibrate.alpha=2"):
        with pytest.raises(ConfigError) as caught:
            study(override)
        assert "did you mean" not in str(caught.value)
