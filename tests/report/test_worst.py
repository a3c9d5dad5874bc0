import re

import pytest
from fake_results import BASE, fake_results, fake_tree
from fake_worst import LONG, fake_worst, highlight, sample, verdict

from monitorbench.metrics.metrics_json import as_results
from monitorbench.prompts.grounding import ground
from monitorbench.records import Label
from monitorbench.report.samples.judged import Kind, Quoted, worst_samples
from monitorbench.report.samples.marked import MOST_CHARACTERS
from monitorbench.report.sections.samples import worst_views
from monitorbench.report.sections.section import Material

MISSED, ALARMED = (Label.MISBEHAVIOR, Label.BENIGN), (Label.BENIGN, Label.MISBEHAVIOR)


def judged(*rows: tuple[tuple[Label, Label | None], float | None, int]):
    """Samples and verdicts from ((label, answer), score, cell)."""
    samples = [sample(i, label, f"text {i}", cell=cell) for i, ((label, _), _, cell) in enumerate(rows)]
    said = zip(samples, rows, strict=True)
    verdicts = {one.id: verdict(one, answer, score) for one, ((_, answer), score, _) in said}
    return samples, verdicts


def test_worst_come_first_and_only_wrong_ones() -> None:
    """The reader looks at the first few: they must be the monitor's most confident errors."""
    samples, verdicts = judged(
        (MISSED, 0.4, 0),
        (MISSED, 0.1, 0),
        (MISSED, None, 0),
        (ALARMED, 0.6, 0),
        (ALARMED, 0.9, 0),
        ((Label.BENIGN, Label.BENIGN), 0.99, 0),
        ((Label.MISBEHAVIOR, Label.MISBEHAVIOR), 0.01, 0),
        ((Label.MISBEHAVIOR, None), 0.0, 0),
        (MISSED, 0.2, 3),
    )
    found = worst_samples(samples, verdicts, 10)
    assert [(one.kind, one.sample.id) for one in found] == [
        *((Kind.MISS, samples[i].id) for i in (1, 0, 2)),
        *((Kind.ALARM, samples[i].id) for i in (4, 3)),
        (Kind.MISS, samples[8].id),
    ]


def test_at_most_k_of_each_kind_in_each_cell() -> None:
    """Without the bound, a bad monitor on 3,010 samples makes a page that no browser opens."""
    samples, verdicts = judged(*((MISSED, i / 40, 3 * (i % 2)) for i in range(30)))
    found = worst_samples(samples, verdicts, 4)
    assert [one.verdict.score for one in found] == [i / 40 for i in (0, 2, 4, 6, 1, 3, 5, 7)]
    assert worst_samples(samples, verdicts, 0) == []
    assert len(worst_samples(samples, verdicts, 10)) == 20
    with pytest.raises(ValueError, match="k: got -1"):
        worst_samples(samples, verdicts, -1)


def test_order_does_not_depend_on_the_order_read() -> None:
    """Two reports of one run have to be the same bytes."""
    samples, verdicts = judged(*((ALARMED, 0.7, 0) for _ in range(8)))
    assert worst_samples(samples, verdicts, 5) == worst_samples(samples[::-1], verdicts, 5)


def test_samples_without_a_verdict_are_passed_over() -> None:
    """A run on a part of the split must not fail the report."""
    samples, verdicts = judged((MISSED, 0.4, 0), (MISSED, 0.1, 0))
    del verdicts[samples[0].id]
    assert [one.sample for one in worst_samples(samples, verdicts, 10)] == samples[1:]


def test_quotes_are_those_that_were_grounded() -> None:
    """A quote shown as found that nobody found is evidence made up."""
    samples, verdicts = judged((MISSED, 0.4, 0))
    word = samples[0].response[0].content.split()[0]
    evidence = ground((word, "nowhere in it"), samples[0].response, 0.85)
    verdicts = {key: one.model_copy(update={"evidence": evidence}) for key, one in verdicts.items()}
    quoted = worst_samples(samples, verdicts, 10)[0].quoted
    assert quoted == Quoted((highlight(0, "content", 0, len(word)),), ("nowhere in it",))


def test_views_are_bounded_and_grouped_by_cell() -> None:
    """Each text is cut at 4,000 characters, and says so; no text is counted under another cell."""
    results = fake_results()
    views = worst_views(Material(results, {}, fake_worst(), [], [], {BASE: BASE}))
    assert [(one["monitor"], one["prompt"]) for one in views] == [(BASE, "direct"), (BASE, "evidence")]
    evidence = views[1]
    assert (evidence["n_misses"], evidence["n_alarms"]) == (6, 6)
    cells = [(listing["cell"], listing["title"].split(":")[0]) for listing in evidence["listings"]]
    assert cells == [
        ("safety_permission/qa", "Misses"),
        ("safety_permission/qa", "False alarms"),
        ("sycophancy_bias/reasoning", "Misses"),
        ("sycophancy_bias/reasoning", "False alarms"),
    ]
    responses = [one["response"] for listing in evidence["listings"] for one in listing["samples"]]
    for response in responses:
        shown = "".join(piece for _, pieces in response.blocks for piece, _ in pieces)
        seen = len(re.sub(r"⟨U\+[0-9A-F]+⟩", ".", shown))
        assert seen == min(MOST_CHARACTERS, response.n_characters)
    assert any(response.n_more > len(LONG) - MOST_CHARACTERS for response in responses)


def test_grounding_is_the_metrics_own() -> None:
    """A sentence on quotes whose share is not that of metrics.json."""
    tree = fake_tree()
    tree["monitors"][BASE]["evidence"]["overall"] |= {"n_quotes": 40, "grounded_quotes": 0.75}
    results = as_results(tree)
    views = worst_views(Material(results, {}, fake_worst(), [], [], {}))
    assert [one["grounding"] for one in views] == [
        "",
        "Of its 40 quotes in all, .75 were located in the judged response.",
    ]
