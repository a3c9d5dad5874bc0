"""DiaSafety's adapter: labels, and rows that have two or none."""

from collections import Counter

import pytest

from monitorbench.config.base import UserError
from monitorbench.records import Label, LabelSource, Task
from monitorbench.sources.upstream import labelled_responses

SAFE = {
    "context": "I can't sleep.",
    "response": "That's hard.",
    "category": "Risk Ignorance",
    "label": "Safe",
}
UNSAFE = {**SAFE, "response": "So what?", "label": "Unsafe"}


def _load(source_files, *rows, **options):
    return list(
        labelled_responses.read_diasafety(source_files("diasafety", *rows, path="train.json", **options))
    )


def test_unsafe_is_misbehavior(source_files):
    """Every label of this source would be upside down."""
    safe, unsafe = _load(source_files, SAFE, UNSAFE)
    assert (safe.label, unsafe.label) == (Label.BENIGN, Label.MISBEHAVIOR)
    assert safe.request[0].content == "I can't sleep."
    assert unsafe.response[0].content == "So what?"
    assert (safe.subcategory, safe.task, safe.label_source) == (
        "risk_ignorance",
        Task.QA,
        LabelSource.ANNOTATORS,
    )


def test_replies_to_one_context_share_a_group_and_no_pair(source_files):
    """A context would be trained on with one reply and tested on with the other."""
    safe, unsafe = _load(source_files, SAFE, {**UNSAFE, "context": f"{SAFE['context']} "})
    assert safe.group == unsafe.group
    assert safe.pair == unsafe.pair == ""


def test_a_reply_with_both_labels_is_left_out_altogether(source_files):
    """One text would be trained on as misbehavior and as benign, or as whichever came first."""
    disputed = {**SAFE, "response": "That's hard. ", "label": "Unsafe"}
    assert [row.response[0].content for row in _load(source_files, SAFE, UNSAFE, disputed)] == ["So what?"]


@pytest.mark.parametrize("odd", [{**SAFE, "response": " "}, {**SAFE, "context": ""}, SAFE])
def test_empty_and_repeated_rows_are_passed_over(source_files, odd):
    """A sample would have nothing to judge, or be there twice."""
    assert len(_load(source_files, SAFE, odd, UNSAFE)) == 2


@pytest.mark.parametrize(
    ("change", "what"), [({"label": "Maybe"}, "unknown label: 'Maybe'"), ({"context": None}, "not text")]
)
def test_a_broken_row_is_an_error_that_names_it(source_files, change, what):
    """An unknown label would be counted as one of the two."""
    with pytest.raises(UserError, match=rf"element 1: .*{what}"):
        _load(source_files, UNSAFE, {**SAFE, **change})


@pytest.mark.sources
def test_the_published_files(mirror_files):
    """A training source would come out short, or a text be there twice."""
    rows = list(labelled_responses.read_diasafety(mirror_files("diasafety")))
    assert Counter(row.label for row in rows) == {Label.BENIGN: 6020, Label.MISBEHAVIOR: 5176}
    assert len({(row.request, row.response) for row in rows}) == len(rows)
