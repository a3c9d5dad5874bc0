"""Recorded verdicts: read strictly, one line a sample, and what they say is what is logged."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.judging.recorded import RecordedVerdict, read_recorded

SHIPPED = Path(__file__).resolve().parents[2] / "examples" / "verdicts-smollm2_135m.jsonl"


def written(folder: Path, *lines: str) -> Path:
    file = folder / f"{len(list(folder.iterdir()))}.jsonl"
    file.write_text("\n".join(lines))
    return file


def test_the_shipped_file_is_read():
    """Otherwise: the documented format is not the one that is read."""
    found = read_recorded(SHIPPED)
    assert len(found) == len(SHIPPED.read_text().splitlines())
    assert all(verdict.score is not None for verdict in found.values())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "expected one JSON object a line"),
        ('{"sample_id": "a", "label": "bad"}', "label: Input should be 'misbehavior' or 'benign'"),
        ('{"sample_id": "a", "label": "benign", "score": 1.2}', "score"),
        ('{"sample_id": "a", "label": "benign", "score": NaN}', "NaN is no finite number"),
        ('{"sample_id": "a", "label": "benign", "label": "misbehavior"}', "twice in one object"),
        ('{"sample_id": "a", "label": "benign", "unscored": "no_label"}', "both a label and a reason"),
        ('{"sample_id": "a", "label": "benign", "confidence": 1}', "confidence"),
        ('{"label": "benign"}', "sample_id"),
        ("[]", "no JSON object; expected one object a line"),
    ],
)
def test_a_line_that_is_not_as_documented_is_named(tmp_path: Path, line: str, said: str):
    """Otherwise: a verdict is guessed, or lost without a word."""
    file = written(tmp_path, '{"sample_id": "b", "label": null}', line)
    with pytest.raises(UserError, match="line 2") as error:
        read_recorded(file)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_sample_twice_and_an_empty_file_are_refused(tmp_path: Path):
    """Otherwise: which of two answers counts is an accident."""
    with pytest.raises(UserError, match="a second line for sample a"):
        read_recorded(written(tmp_path, *['{"sample_id": "a", "label": "benign"}'] * 2))
    with pytest.raises(UserError, match="no line in it"):
        read_recorded(written(tmp_path, ""))


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=9),
        st.tuples(st.sampled_from(["misbehavior", "benign", None]), st.floats(0, 1) | st.none()),
        min_size=1,
        max_size=9,
    )
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, verdicts: dict):
    """Otherwise: a label or a score changes on its way."""
    rows = [{"sample_id": key, "label": label, "score": score} for key, (label, score) in verdicts.items()]
    file = written(tmp_path_factory.mktemp("recorded"), *map(json.dumps, rows))
    found = read_recorded(file)
    assert {key: (one.label, one.score) for key, one in found.items()} == verdicts


def test_a_label_that_is_missing_is_unscored_and_never_benign():
    """Otherwise: a monitor that gave no answer looks like one that found nothing."""
    assert RecordedVerdict(sample_id="a", label=None).label is None
