"""The sections of samples: the worst with their text, and of each inverted cell those it got most wrong."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from monitorbench.metrics.points_in_words import InvertedCell, inverted_cells, inverted_heading, where
from monitorbench.metrics.results import Results
from monitorbench.metrics.table import Place
from monitorbench.metrics.written import DASH, rate, shown, value_of
from monitorbench.records import Message
from monitorbench.report.samples.judged import Kind, WorstSample
from monitorbench.report.samples.marked import MOST_CHARACTERS, shown_conversation
from monitorbench.report.sections.section import NOTHING, Material, fill
from monitorbench.report.template import visible

_TITLES = {
    Kind.MISS: "Misses: misbehavior answered benign",
    Kind.ALARM: "False alarms: benign answered misbehavior",
}
_MOST_QUOTES = 20
_SHOWN = 2
"""Samples of each kind that stand below an inverted cell; the others are a link, or further below, away."""
_CHARACTERS = 160
"""Most characters shown there of a request, and of a response."""
_ANSWERED = {
    Kind.ALARM: "benign, answered misbehavior",
    Kind.MISS: "misbehavior, answered benign",
}


def worst(material: Material) -> Markup:
    """Show each cell's misses with the lowest score and false alarms with the highest."""
    if not (material.worst or material.worst_missing):
        return NOTHING
    return fill("worst", {"worst": worst_views(material), "worst_missing": material.worst_missing})


def worst_views(material: Material) -> list[dict[str, Any]]:
    """What the template shows of the worst samples of each monitor, in the order of the other tables."""
    return [
        {
            "monitor": material.short_names.get(monitor, monitor),
            "prompt": prompt,
            "n_misses": sum(sample.kind is Kind.MISS for sample in samples),
            "n_alarms": sum(sample.kind is Kind.ALARM for sample in samples),
            "grounding": _grounding(material.results, monitor, prompt),
            "listings": [
                {
                    "cell": cell,
                    "title": _TITLES[kind],
                    "samples": [
                        _view(sample, material.samples_link(monitor, prompt, sample=sample.sample.id))
                        for sample in inside
                    ],
                }
                for (cell, kind), inside in groupby(samples, lambda one: (str(one.sample.cell), one.kind))
            ],
        }
        for monitor in material.results["table"].monitors()
        for prompt, samples in material.worst.get(monitor, {}).items()
    ]


def _view(one: WorstSample, link: str) -> dict[str, Any]:
    """One sample and what the monitor answered; `link` leads to it beside its counterpart, or is empty."""
    sample, verdict, quoted = one.sample, one.verdict, one.quoted
    facts = {
        "answer": _cut(verdict.answer) or DASH,
        "score": DASH if verdict.score is None else f"{verdict.score:.3f}",
        "category": _cut(verdict.category),
        "severity": _cut(verdict.severity),
        "true kind": sample.subcategory,
        "source": sample.source,
    }
    return {
        "sample_id": sample.id,
        "link": link,
        "facts": [(name, value) for name, value in facts.items() if value],
        "request": shown_conversation(sample.request),
        "response": shown_conversation(sample.response, quoted.highlights),
        "ungrounded": [_cut(quote) for quote in quoted.ungrounded[:_MOST_QUOTES]],
        "n_more_quotes": max(0, len(quoted.ungrounded) - _MOST_QUOTES),
    }


def _cut(text: str) -> str:
    """A monitor's words are bounded as the judged text is."""
    text = text.strip()
    more = len(text) - MOST_CHARACTERS
    return text if more <= 0 else f"{text[:MOST_CHARACTERS]} … {more:,} characters more"


def _grounding(results: Results, monitor: str, prompt: str) -> str:
    """A sentence on the share of quotes that were located; empty without quotes."""
    numbers = results["table"].numbers(Place(monitor, prompt))
    if numbers is None or not numbers["n_quotes"].whole:
        return ""
    share = value_of(numbers["grounded_quotes"])
    return f"Of its {numbers['n_quotes'].whole} quotes in all, {share} were located in the judged response."


def inverted(material: Material) -> Markup:
    """Show which monitors are inverted in which cells, and the samples there that they got most wrong."""
    rows = [_of_cell(material, row) for row in inverted_cells(material.results)]
    return fill("inverted", {"heading": inverted_heading(), "rows": rows}) if rows else NOTHING


def _of_cell(material: Material, row: InvertedCell) -> dict[str, Any]:
    """One monitor in one cell; links to misses and alarms are empty where there is no samples page."""
    metrics, stratum = row.found, material.results["headline"].get(row.cell)
    inside = [
        one
        for one in material.worst.get(row.monitor, {}).get(row.prompt, ())
        if str(one.sample.cell) == row.cell and stratum in (None, one.sample.stratum)
    ]
    return {
        "monitor": material.short_names[row.monitor],
        "prompt": row.prompt,
        "where": where(row.cell),
        "numbers": f"AUROC {shown(metrics['auroc'])}, MR {value_of(metrics['miss_rate'])}, "
        f"FAR {value_of(metrics['false_alarm_rate'])}, n = {metrics['n'].whole:,}",
        **{  # the samples page knows the whole cell alone
            name: ""
            if stratum is not None
            else material.samples_link(row.monitor, row.prompt, cell=row.cell, verdict=verdict)
            for name, verdict in (("misses", "miss"), ("alarms", "alarm"))
        },
        "samples": [
            {
                "answered": _ANSWERED[kind],
                "score": "" if one.verdict.score is None else f", score {rate(one.verdict.score)}",
                "link": material.samples_link(row.monitor, row.prompt, sample=one.sample.id),
                "request": _beginning(one.sample.request),
                "response": _beginning(one.sample.response),
            }
            for kind in (Kind.ALARM, Kind.MISS)
            for one in [sample for sample in inside if sample.kind is kind][:_SHOWN]
        ],
    }


def _beginning(messages: Sequence[Message]) -> str:
    """Return the beginning of a text as one line, unseen characters by name."""
    text = " ".join(" ".join(message.content for message in messages).split())
    cut = text[:_CHARACTERS]
    return visible(cut) + ("…" if len(text) > len(cut) else "")
