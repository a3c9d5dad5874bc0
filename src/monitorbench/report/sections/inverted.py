"""The section of monitors that are inverted in a cell, each with the samples there that it got most wrong."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from monitorbench.metrics.written import rate, shown, value_of
from monitorbench.records import Message
from monitorbench.report.samples.visible import visible
from monitorbench.report.samples.worst import Kind, WorstSample
from monitorbench.report.sections.section import NOTHING, Material, fill
from monitorbench.report.tables.inverted import InvertedCell, heading, inverted_cells, where

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
