"""The sections of samples: the worst with their text, and of each inverted cell those it got most wrong."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from monitorbench.metrics import reading
from monitorbench.metrics.inverted import InvertedCell, heading, inverted_cells, where
from monitorbench.metrics.results import Results
from monitorbench.metrics.table import Place
from monitorbench.metrics.written import DASH, rate, shown, value_of
from monitorbench.records import Message
from monitorbench.report.samples.marked import MOST_CHARACTERS, ShownConversation, shown_conversation
from monitorbench.report.samples.worst import Kind, WorstSample
from monitorbench.report.sections.section import NOTHING, Material, fill
from monitorbench.report.template import visible

_TITLES = {
    Kind.MISS: "Misses: misbehavior answered benign",
    Kind.ALARM: "False alarms: benign answered misbehavior",
}


def worst(material: Material) -> Markup:
    """Show each cell's misses with the lowest score and false alarms with the highest."""
    if not (material.worst or material.worst_missing):
        return NOTHING
    values = {
        "worst": worst_views(material),
        "worst_missing": material.worst_missing,
    }
    return fill("worst", values)


class WorstView(NamedTuple):
    """One sample and what the monitor answered."""

    sample_id: str
    link: str
    """Address of the sample beside its counterpart, or empty."""
    facts: list[tuple[str, str]]
    request: ShownConversation
    response: ShownConversation
    ungrounded: list[str]
    n_more_quotes: int


class Listing(NamedTuple):
    """The samples of one kind in one cell."""

    cell: str
    title: str
    samples: list[WorstView]


class OfMonitor(NamedTuple):
    """All that is listed of one monitor and prompt; `grounding` is a sentence or empty."""

    monitor: str
    prompt: str
    n_misses: int
    n_alarms: int
    grounding: str
    listings: list[Listing]


_MOST_QUOTES = 20


def worst_views(material: Material) -> list[OfMonitor]:
    """List the worst samples of monitors that have metrics, in the order of the other tables."""
    results, worst = material.results, material.worst
    return [
        OfMonitor(
            monitor=material.short_names.get(monitor, monitor),
            prompt=prompt,
            n_misses=sum(sample.kind is Kind.MISS for sample in samples),
            n_alarms=sum(sample.kind is Kind.ALARM for sample in samples),
            grounding=_grounding(results, monitor, prompt),
            listings=_listings(samples, partial(material.samples_link, monitor, prompt)),
        )
        for monitor in [name for name in reading.monitors(results) if name in worst]
        for prompt, samples in worst[monitor].items()
    ]


def _listings(found: Sequence[WorstSample], link: Callable[..., str]) -> list[Listing]:
    return [
        Listing(cell, _TITLES[kind], [_view(sample, link(sample=sample.sample.id)) for sample in inside])
        for (cell, kind), inside in groupby(found, key=lambda sample: (str(sample.sample.cell), sample.kind))
    ]


def _view(one: WorstSample, link: str) -> WorstView:
    sample, verdict, quoted = one.sample, one.verdict, one.quoted
    facts = {
        "answer": _cut(verdict.answer) or DASH,
        "score": DASH if verdict.score is None else f"{verdict.score:.3f}",
        "category": _cut(verdict.category),
        "severity": _cut(verdict.severity),
        "true kind": sample.subcategory,
        "source": sample.source,
    }
    return WorstView(
        sample_id=sample.id,
        link=link,
        facts=[(name, value) for name, value in facts.items() if value],
        request=shown_conversation(sample.request),
        response=shown_conversation(sample.response, quoted.highlights),
        ungrounded=[_cut(quote) for quote in quoted.ungrounded[:_MOST_QUOTES]],
        n_more_quotes=max(0, len(quoted.ungrounded) - _MOST_QUOTES),
    )


def _cut(text: str) -> str:
    """A monitor's words are bounded as the judged text is."""
    text = text.strip()
    more = len(text) - MOST_CHARACTERS
    return text if more <= 0 else f"{text[:MOST_CHARACTERS]} … {more:,} characters more"


def _grounding(results: Results, monitor: str, prompt: str) -> str:
    numbers = results["table"].numbers(Place(monitor, prompt))
    if numbers is None or not numbers["n_quotes"].whole:
        return ""
    share = value_of(numbers["grounded_quotes"])
    return f"Of its {numbers['n_quotes'].whole} quotes in all, {share} were located in the judged response."


_SHOWN = 2
"""Samples of each kind that stand below a cell; the others are a link, or further below, away."""
_CHARACTERS = 160
"""Most characters shown of a request, and of a response."""
_SAID = {
    Kind.ALARM: "benign, answered misbehavior",
    Kind.MISS: "misbehavior, answered benign",
}


class _Excerpt(NamedTuple):
    """One sample, in two lines."""

    said: str
    score: str
    link: str
    request: str
    response: str


class _Inverted(NamedTuple):
    """One monitor in one cell."""

    monitor: str
    prompt: str
    where: str
    numbers: str
    misses: str
    """The addresses of its misses, and of its false alarms; empty where there is no samples page."""
    alarms: str
    samples: list[_Excerpt]


def inverted(material: Material) -> Markup:
    """Show which monitors are inverted in which cells, and the samples there that they got most wrong."""
    rows = [_of_cell(material, row) for row in inverted_cells(material.results)]
    return fill("inverted", {"heading": heading(), "rows": rows}) if rows else NOTHING


def _of_cell(material: Material, row: InvertedCell) -> _Inverted:
    metrics = row.found
    numbers = (
        f"AUROC {shown(metrics['auroc'])}, MR {value_of(metrics['miss_rate'])}, "
        f"FAR {value_of(metrics['false_alarm_rate'])}, n = {metrics['n'].whole:,}"
    )
    worst = material.worst.get(row.monitor, {}).get(row.prompt, ())
    stratum = material.results["headline"].get(row.cell)
    inside = [
        worst_sample
        for worst_sample in worst
        if str(worst_sample.sample.cell) == row.cell
        and (stratum is None or worst_sample.sample.stratum == stratum)
    ]

    def link(verdict: str) -> str:
        if stratum is not None:  # the samples page knows the whole cell alone
            return ""
        return material.samples_link(row.monitor, row.prompt, cell=row.cell, verdict=verdict)

    return _Inverted(
        monitor=material.short_names[row.monitor],
        prompt=row.prompt,
        where=where(row.cell),
        numbers=numbers,
        misses=link("miss"),
        alarms=link("alarm"),
        samples=[
            _excerpt(
                worst_sample, material.samples_link(row.monitor, row.prompt, sample=worst_sample.sample.id)
            )
            for kind in (Kind.ALARM, Kind.MISS)
            for worst_sample in [it for it in inside if it.kind is kind][:_SHOWN]
        ],
    )


def _excerpt(one: WorstSample, link: str) -> _Excerpt:
    sample, verdict = one.sample, one.verdict
    score = "" if verdict.score is None else f", score {rate(verdict.score)}"
    return _Excerpt(_SAID[one.kind], score, link, _beginning(sample.request), _beginning(sample.response))


def _beginning(messages: Sequence[Message]) -> str:
    """Return the beginning of a text as one line, unseen characters by name."""
    text = " ".join(" ".join(message.content for message in messages).split())
    cut = text[:_CHARACTERS]
    return visible(cut) + ("…" if len(text) > len(cut) else "")
