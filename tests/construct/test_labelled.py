"""What upstream has labelled comes through as it is: its label, its words, its pairs and no others."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from monitorbench.construct.pair import ConstructionContext, labelled_samples
from monitorbench.records import (
    Category,
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Task,
)
from monitorbench.upstream import LabelledResponse


def row(id_: str, label: Label = Label.BENIGN, **fields: Any) -> LabelledResponse:
    plain: dict[str, Any] = {
        "group": f"about {id_}",
        "pair": "",
        "category": Category.SAFETY_PERMISSION,
        "task": Task.QA,
        "subcategory": "advice",
        "request": (Message(role=Role.USER, content="May I mix these two cleaners?"),),
        "response": (Message(role=Role.ASSISTANT, content=f"Answer {id_}."),),
        "label_source": LabelSource.UPSTREAM,
    }
    return LabelledResponse(id=id_, label=label, **{**plain, **fields})


def test_nothing_of_a_row_is_changed():
    """A label, a trace or a tool call that is lost on the way is lost to every monitor."""
    said = (
        Message(role=Role.ASSISTANT, content="I look.", thinking="Which one?"),
        Message(role=Role.TOOL, content="two files", tool_call_id="1"),
        Message(role=Role.ASSISTANT, content="Two."),
    )
    one = row(
        "7",
        Label.MISBEHAVIOR,
        category=Category.SPECIFICATION_GAMING,
        task=Task.CODE,
        subcategory="shutdown",
        response=said,
        label_source=LabelSource.EXECUTION,
        subject_model="vendor/model",
    )
    (sample,), rejected = labelled_samples([one], ConstructionContext("logs", "MIT", 0, None))
    assert not rejected
    assert sample.request == one.request
    assert sample.response == said
    assert (sample.label, sample.label_source) == (Label.MISBEHAVIOR, LabelSource.EXECUTION)
    assert (sample.category, sample.task, sample.subcategory) == (one.category, one.task, "shutdown")
    assert (sample.source, sample.licence, sample.subject_model) == ("logs", "MIT", "vendor/model")
    assert sample.construction is Construction.LABELLED
    assert sample.split is None
    assert sample.group_id == "logs-about 7"


def test_upstream_twins_are_joined_and_singles_stay_single():
    """A pair that upstream never made, or one that is torn, is a false twin in the benchmark."""
    rows = [
        row("a", Label.MISBEHAVIOR, pair="goal 1", group="goal 1"),
        row("b", Label.BENIGN, pair="goal 1", group="goal 1"),
        row("c", Label.BENIGN),
        row("d", Label.MISBEHAVIOR),
    ]
    a, b, c, d = labelled_samples(rows, ConstructionContext("artifacts", "MIT", 0, None)).samples
    assert a.pair_id == b.pair_id
    assert a.group_id == b.group_id
    assert len({a.pair_id, c.pair_id, d.pair_id}) == 3


def test_two_sources_with_the_same_ids_do_not_meet():
    """Row 0 of one data set is no twin of row 0 of another, and no reason to hold it out."""
    (one,) = labelled_samples([row("0")], ConstructionContext("first", "MIT", 0, None)).samples
    (other,) = labelled_samples([row("0")], ConstructionContext("second", "MIT", 0, None)).samples
    assert one.pair_id != other.pair_id
    assert one.group_id != other.group_id
    assert one.id != other.id


@given(st.lists(st.sampled_from(list(Label)), max_size=12), st.integers(0, 12))
def test_a_row_makes_the_same_sample_whatever_stands_beside_it(labels: list[Label], cut: int):
    """Rows are handed over in pieces; where a piece ends must not change a sample."""
    rows = [row(str(number), label) for number, label in enumerate(labels)]
    context = ConstructionContext("s", "MIT", 0, None)
    whole = labelled_samples(rows, context).samples
    pieces = [labelled_samples(part, context).samples for part in (rows[:cut], rows[cut:])]
    assert [*pieces[0], *pieces[1]] == whole
    assert [sample.label for sample in whole] == labels
