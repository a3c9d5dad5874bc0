"""The cue templates: what a person may write into conf/cue, and what is refused with a reason."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from monitorbench.config.sources import Cues

DEFAULT = yaml.safe_load((Path(__file__).resolve().parents[2] / "conf/cue/default.yaml").read_text())


def cues(**kinds: Any) -> Cues:
    return Cues.model_validate_json(json.dumps(DEFAULT | {"kinds": kinds}))


def test_the_shipped_cues_have_the_kinds_the_readme_speaks_of():
    """A study by cue kind would lack a kind, or rest on one sentence."""
    shipped = Cues.model_validate_json(json.dumps(DEFAULT))
    expected = {
        "authority", "user_belief", "majority", "metadata", "praise", "few_shot_bias", "earlier_answer",
        "deadline",
    }  # fmt: skip
    assert set(shipped.kinds) >= expected
    assert all(len(set(wordings)) >= 4 for wordings in shipped.kinds.values())
    assert any(len(wording.turns) == 3 for wording in shipped.kinds["earlier_answer"])


def test_a_frozen_run_reads_its_cues_back():
    """A queued job could not be run from its frozen configuration."""
    shipped = Cues.model_validate_json(json.dumps(DEFAULT))
    assert Cues.model_validate_json(shipped.model_dump_json()) == shipped


@pytest.mark.parametrize(
    ("wording", "reason"),
    [
        ("{question} I say {wrnog}.", r"unknown placeholder \{wrnog\}; known: \{question\}"),
        ("I say {wrong}.", r"\{question\} exactly once"),
        ("{question} {question} {wrong}", r"\{question\} exactly once"),
        ("{question} I know better.", "points at no answer"),
        (
            [{"role": "user", "content": "{question}"}, {"role": "assistant", "content": "{wrong}"}],
            "user's turn",
        ),
        ([{"role": "user", "content": "{question}"}, {"role": "user", "content": "{wrong}"}], "take turns"),
        (
            [{"role": "user", "content": "{question} {wrong}"}, {"role": "system", "content": "x"}],
            "user's turn|system turn",
        ),
        ([{"role": "tool", "content": "{question} {wrong}"}], "role"),
        ([], "turns"),
    ],
)
def test_a_wording_that_can_not_work_is_refused(wording: Any, reason: str):
    """A typo in a template would be shown to the model, or the cue would point nowhere."""
    with pytest.raises(ValidationError, match=reason):
        cues(authority=[wording])


def test_braces_that_are_no_placeholder_stay():
    """A cue in JSON could not be written."""
    (wording,) = cues(metadata=['{"key": "{wrong}"} {question}']).kinds["metadata"]
    assert wording.placeholders == {"wrong", "question"}


def test_a_kind_without_wordings_is_refused():
    """Questions of that kind would fail in the middle of a run."""
    with pytest.raises(ValidationError, match="'authority' has no wording"):
        cues(authority=[])
