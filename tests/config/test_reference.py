"""The page of all settings is of the settings that there are."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from monitorbench.config.evaluation import Calibrate, Stakes
from monitorbench.config.load import field_names
from monitorbench.config.reference import reference

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """By key the other cells of its rows."""
    found = {}
    for line in reference(ROOT / "conf").splitlines():
        if line.startswith("| `"):
            key, *cells = line.strip("| ").replace("\\|", "/").split(" | ")
            found.setdefault(key.strip("`"), []).append(cells)
    return found


def test_the_page_is_not_stale():
    """A reader would set a key that is no more. `python -m monitorbench.config.reference docs/settings.md`"""
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == reference(ROOT / "conf")


def test_every_key_of_the_study_is_there(rows):
    for group in field_names([]):
        below = field_names([group])
        names = [f"{group}.{name}" for name in below if name != "kind"] or [group]
        missing = [
            name for name in names if not any(key == name or key.startswith(f"{name}.") for key in rows)
        ]
        assert not missing, missing


def test_every_key_has_a_type_and_a_meaning(rows):
    bare = [
        key for key, found in rows.items() for cells in found if len(cells) < 3 or not cells[-1].strip(" |")
    ]
    assert not bare, "say below the field in src/monitorbench/config/ what it means"


def test_every_value_is_that_of_a_study(rows):
    assert rows["calibrate.alpha"][0][:2] == ["number, > 0, < 1", f"`{Calibrate().alpha}`"]
    assert rows["stakes.cost_miss"][0][1] == f"`{Stakes().cost_miss}`"
    assert rows["dataset.path"][0][1] == "*required*"
    training = OmegaConf.load(ROOT / "conf" / "training" / "lora_cpu.yaml")
    assert rows["training.learning_rate"][0][1] == f"`{training.learning_rate}`"
    assert rows["score.min_coverage"][0][1] == "`0.9`"
