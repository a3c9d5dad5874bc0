"""Several draws of one sample: which they are made one of, and what can't be one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from score_files import Import, by_line, origins, runs_of, scores_of

from monitorbench.config.base import UserError
from monitorbench.runs.directory import read_manifest
from monitorbench.runs.keyed_log import VERDICTS, read_verdicts


def test_draws_that_are_missing_take_nothing_from_the_others(tmp_path: Path, importing: Import):
    """If it failed: one draw of eight would flag a sample, or one monitor's gap end the import of all."""
    rows = [
        {"id": 1, "label": 1, "a": [2, 6, 7], "b": [5, 5, 5]},
        {"id": 2, "label": 0, "a": [2, None, 3], "b": None},
        {"id": 3, "label": 0, "a": [], "b": [1, 1, 4]},
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    importing(tmp_path / "s.jsonl", "import.monitors={a:a,b:b}", "import.scale=[0,10]", "import.missing=flag")
    found = {name.partition("/")[0]: scores_of(tmp_path, run) for name, run in runs_of(tmp_path).items()}
    (a, b) = (next(scores for name, scores in found.items() if name.startswith(one)) for one in "ab")
    np.testing.assert_array_equal(a, [0.25, 0.5, 1.0], "a list without a draw counts as an alarm")
    np.testing.assert_array_equal(b, [0.2, 0.5, 1.0])
    rows[0]["b"] = [5, 5]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError, match=r"line 1: b has 2 entries, a 3"):
        importing(tmp_path / "s.jsonl", "import.monitors={a:a,b:b}", "import.scale=[0,10]")


def test_draws_that_ended_differently_are_samples_by_a_setting(tmp_path: Path, importing: Import):
    """If it failed: an agent that misbehaved in one epoch of two would keep its log out, no way named."""
    rows = [{"id": i, "draw": k, "label": k, "score": 0.5} for i in range(2) for k in range(2)]
    (tmp_path / "s.jsonl").write_text(by_line(rows))
    with pytest.raises(UserError, match=r"line 2: label='1': another .* \(or import\.draws=all, for draws"):
        importing(tmp_path / "s.jsonl")
    assert len(scores_of(tmp_path, importing(tmp_path / "s.jsonl", "import.draws=all"))) == 4


@pytest.mark.parametrize(
    ("changes", "overrides", "said"),
    [
        ({}, (), ""),
        ({"response": "an answer, whole"}, ("import.draws=max",), ""),
        ({"response": "another answer"}, ("import.draws=all",), ""),
        ({"response": "another answer"}, (), "line 3: response='another answer': .*, or import.draws=all"),
        ({"response": "an answer, whole"}, (), "line 3: response='an answer, whole': another text"),
        ({"response": "another answer"}, ("import.draws=max",), "line 3: response='another answer'"),
        (
            {"request": "another question"},
            ("import.draws=max",),
            r"line 3: request='another question': another text of sample 'a' is in .*s\.jsonl, line 1; "
            r"expected an id for each text \(import\.columns\.request='' reads no texts\)",
        ),
        ({"monitor": "b", "draw": 0, "response": "another answer"}, (), "line 3: response=.*for each text"),
    ],
)
def test_draws_of_one_sample_are_of_one_text(
    changes: dict[str, Any], overrides: tuple[str, ...], said: str, tmp_path: Path, importing: Import
):
    """If it failed: a miss would be averaged away under the id of another text, whose label it would have."""
    row = {"monitor": "a", "request": "a question", "response": "an answer"}
    rows = [
        {"id": "a", "draw": 0, "label": 1, "score": 0.956, **row},
        {"id": "b", "draw": 0, "label": 0, "score": 0.1, **row, "response": "else"},
        {"id": "a", "draw": 1, "label": 1, "score": 0.052, **row, **changes},
    ]
    (tmp_path / "s.jsonl").write_text(by_line(rows))
    if not said:
        assert importing(tmp_path / "s.jsonl", *overrides)
        return
    with pytest.raises(UserError, match=said):
        importing(tmp_path / "s.jsonl", *overrides)
    assert importing(tmp_path / "s.jsonl", "import.columns.request=''", "import.columns.response=''")


def test_own_answers_of_draws_are_one_by_the_majority(tmp_path: Path, importing: Import):
    """If it failed: the pages would say another rule for a monitor's own answers than the tables follow."""
    rows = [
        {"id": i, "draw": k, "label": i % 2, "score": 0.4, "flagged": k < i}
        for i in range(4)
        for k in range(3)
    ]
    rows += [
        {"id": "tie", "draw": k, "label": 1, "score": (0.956, 0.052)[k], "flagged": not k} for k in (0, 1)
    ]
    (tmp_path / "s.jsonl").write_text(by_line(rows))
    run = importing(tmp_path / "s.jsonl")
    own = {
        one["id"]: one["own_id"] for one in origins(tmp_path / "data" / read_manifest(run)["results"]["data"])
    }
    verdicts = {own[one.sample_id]: one for one in read_verdicts(run / VERDICTS)}
    flagged = {name for name, one in verdicts.items() if one.label == "misbehavior"}
    assert flagged == {"2", "3", "tie"}
    assert verdicts["tie"].score == 0.504
