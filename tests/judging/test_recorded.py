"""Recorded verdicts: read strictly, one line a sample, and what they say is what is logged."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import sample

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import, ImportColumns
from monitorbench.judging.recorded import check_verdicts, read_recorded, verdicts_of
from monitorbench.records import Label

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
        ("{", "Expecting property name"),
        ('{"sample_id": "a", "label": "bad"}', "label='bad' is no label"),
        ('{"sample_id": "a", "label": "benign", "score": 1.2}', "score='1.2' is outside the scale"),
        ('{"sample_id": "a", "label": "benign", "score": NaN}', "NaN is no finite number"),
        ('{"sample_id": "a", "label": "benign", "label": "misbehavior"}', "twice in one object"),
        ('{"sample_id": "a", "label": "benign", "unscored": "no_label"}', "both a label and a reason"),
        ('{"sample_id": "a", "label": null, "unscored": "tired"}', "unscored='tired' is no reason"),
        ('{"label": "benign"}', "no sample"),
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


def test_a_file_that_does_not_say_one_thing_of_named_samples_is_refused(tmp_path: Path):
    """Otherwise: which of two answers counts is an accident."""
    two = '{"sample_id": "a", "monitor": "%s", "label": "benign"}'
    for lines, said in (
        (['{"sample_id": "a", "label": "benign"}'] * 2, "a second score of sample 'a'"),
        ([""], "no row in it"),
        (['{"label": "benign"}'], "expected monitor.read_as.columns.sample"),
        ([two % "x", two % "y"], "several monitors"),
    ):
        with pytest.raises(UserError, match=said):
            read_recorded(written(tmp_path, *lines))


@given(
    st.dictionaries(
        # Blanks around a name are no part of it.
        st.text(max_size=9)
        .map(str.strip)
        .filter(lambda text: text.casefold() not in Import().missing_values),
        st.tuples(st.sampled_from(["misbehavior", "benign", None]), st.floats(0, 1) | st.none()),
        min_size=1,
        max_size=9,
    )
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, verdicts: dict):
    """Otherwise: a label or a score changes on its way, or a label is lost for want of a score."""
    rows = [{"sample_id": key, "label": label, "score": score} for key, (label, score) in verdicts.items()]
    file = written(tmp_path_factory.mktemp("recorded"), *map(json.dumps, rows))
    found = read_recorded(file)
    assert {key: (one.label, one.score) for key, one in found.items()} == verdicts
    assert all((one.label is None) == (one.unscored is not None) for one in found.values())


def test_any_form_that_import_reads_is_a_verdict_file(tmp_path: Path):
    """Otherwise: the same scores would have to be written in another form to be compared."""
    file = tmp_path / "guard.csv"
    file.write_text("id;rating;seconds\na;7/10;2\nb;;1\n")
    with pytest.raises(UserError, match=r"monitor\.read_as\.columns\.score"):
        read_recorded(file)
    read = read_recorded(file, Import(columns=ImportColumns(score="rating"), scale=(0, 10)))
    assert [(one.label, one.score, one.seconds) for one in read.values()] == [
        (Label.MISBEHAVIOR, 0.7, 2.0),
        (None, None, 1.0),
    ]


def test_samples_go_by_their_own_id_too(tmp_path: Path):
    """Otherwise: a team would have to look up our hash of each of its rows."""
    own, other, absent = (
        sample(pair, "Fine.", Label.BENIGN).model_copy(update={"own_id": name})
        for pair, name in (("a", "row 1"), ("b", "row 1"), ("c", "row 2"))
    )
    file = written(tmp_path, '{"sample_id": "row 1", "label": "misbehavior"}')
    (verdict,) = verdicts_of(file, Import(), [own])
    assert verdict.label is Label.MISBEHAVIOR
    with pytest.raises(UserError, match="'row 1' is the id of several samples"):
        verdicts_of(file, Import(), [own, other])
    with pytest.raises(
        UserError, match=r"no entry for 1 of 1 samples, such as .* \('row 2' in its own file\)"
    ):
        verdicts_of(file, Import(), [absent])


@pytest.mark.parametrize("n_wrong", [0, 1])
def test_labels_given_as_verdicts_are_noticed(n_wrong: int, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Otherwise: a file of truths is a perfect monitor, and nothing says so."""
    labels = [Label.BENIGN, Label.MISBEHAVIOR] * 5
    samples = [sample(f"p{i}", "Fine.", label) for i, label in enumerate(labels)]
    answers = [Label.MISBEHAVIOR] * n_wrong + labels[n_wrong:]
    rows = [
        {"sample_id": of.id, "label": answer, "score": 0.4}
        for of, answer in zip(samples, answers, strict=True)
    ]
    check_verdicts(written(tmp_path, *map(json.dumps, rows)), Import(), samples)
    assert ("its answers are the labels of all 10 samples" in caplog.text) is (n_wrong == 0)
