"""One monitor under several prompts as rows of text, and the choice of a wording in rows and words."""

from collections.abc import Mapping
from typing import NamedTuple

from monitorbench.metrics.prompts import PromptsFacts, WordingChoice
from monitorbench.metrics.results import Results, shared_numbers, short_names
from monitorbench.metrics.table import Numbers
from monitorbench.metrics.transfer import Measure, TransferDifference, change
from monitorbench.metrics.written import (
    DASH,
    count,
    interval,
    rate,
    rate_with_interval,
    shown,
    signed_interval,
    signed_with_interval,
    value_of,
)

METRICS = ("n_unscored", "miss_rate", "false_alarm_rate", "auroc")
_DIFFERENCES: tuple[Measure, ...] = ("miss_rate", "false_alarm_rate", "auroc")
COLUMNS = ("unscored", "miss rate", "false alarms", "AUROC")


class PromptRow(NamedTuple):
    """A monitor under one prompt; `differences` are of MR, FAR and AUROC, empty for the first prompt."""

    prompt: str
    numbers: list[str]
    """Values of `METRICS`, under `COLUMNS`."""
    differences: list[str]


class PromptBlock(NamedTuple):
    """One monitor's prompts, over the `n` samples that it judged under each."""

    monitor: str
    n: int
    base: str
    rows: list[PromptRow]
    spread: str
    """Spread over the prompts, in words; empty where there is none."""


def prompt_blocks(results: Results) -> list[PromptBlock]:
    """Every monitor with several prompts, by its short name."""
    by_monitor = results["prompts"]
    names = short_names(results)
    return [
        PromptBlock(
            names[monitor],
            by_monitor[monitor]["n"],
            by_monitor[monitor]["base"],
            _rows(results, monitor),
            _spread_in_words(by_monitor[monitor], shared_numbers(results, monitor)),
        )
        for monitor in results["table"].monitors()
        if monitor in by_monitor
    ]


def _spread_in_words(facts: PromptsFacts, of_prompts: Mapping[str, Numbers]) -> str:
    """Say how far apart prompts lie; empty with fewer than two prompts with an AUROC."""
    spread = facts["spread"]
    if spread is None:
        return ""
    low, high = (of_prompts[name]["auroc"] for name in (spread["lowest"], spread["highest"]))
    bounds = spread["auroc_ci"]
    is_shown = bounds is not None and bounds[0] > 0
    rates = ", ".join(
        f"of {name} {rate(value)}"
        for name, value in (("MR", spread["miss_rate"]), ("FAR", spread["false_alarm_rate"]))
        if value is not None
    )
    return (
        f"The wording alone moves AUROC from {value_of(low)} ({spread['lowest']}) to {value_of(high)} "
        f"({spread['highest']}): a spread of {rate(spread['auroc'])} {signed_interval(bounds)}".rstrip()
        + ("" if is_shown else ", no difference found")
        + (f"; {rates}." if rates else ".")
    )


def _rows(results: Results, monitor: str) -> list[PromptRow]:
    rows = []
    for prompt, of in shared_numbers(results, monitor).items():
        minus = results["prompts"][monitor]["differences"].get(prompt)
        rows.append(PromptRow(prompt, [shown(of[name]) for name in METRICS], _differences(minus)))
    return rows


def _differences(minus: TransferDifference | None) -> list[str]:
    if minus is None:
        return []
    changes = (change(minus, measure) for measure in _DIFFERENCES)
    return [signed_with_interval(moved.value, moved.interval) for moved in changes]


CHOICE_COLUMNS = (("prompt", 23), ("AUROC", 13), ("chosen minus it", 17), ("MR", 4), ("FAR", 4), ("unsc.", 5))
"""Columns of `choice_rows`, with their widths in a terminal."""


def choice_rows(choice: WordingChoice) -> list[list[str]]:
    """A row a prompt, the highest AUROC first."""
    return [
        [
            name,
            rate_with_interval(of["auroc"], of["auroc_ci"]),
            "chosen"
            if name == choice["chosen"]
            else DASH
            if of["behind"] is None
            else signed_with_interval(of["behind"], of["behind_ci"]),
            rate(of["miss_rate"]),
            rate(of["false_alarm_rate"]),
            count(of["n_unscored"]),
        ]
        for name, of in sorted(choice["prompts"].items(), key=lambda entry: -(entry[1]["auroc"] or 0.0))
    ]


def in_words(choice: WordingChoice) -> str:
    """Say which wording was chosen, its AUROC, what is not shown worse, and how far to trust it."""
    chosen, spread = choice["prompts"][choice["chosen"]], choice["spread"]
    opening = (
        f"{choice['chosen']} was chosen on {choice['n']:,} {choice['split']} samples: AUROC "
        f"{rate(chosen['auroc'])} {interval(chosen['auroc_ci'])}"
    )
    sentences = [opening]
    if spread is not None:
        bounds = signed_interval(choice["spread_ci"])
        sentences.append(f"spread over {len(choice['prompts'])} prompts {rate(spread)} {bounds}".rstrip())
    if choice["not_shown_worse"]:
        sentences.append(f"not shown worse: {', '.join(choice['not_shown_worse'])}")
    if chosen["auroc_ci"] and chosen["auroc_ci"][0] <= 0.5:
        sentences.append("not shown to be better than guessing")
    return f"{'; '.join(sentences)}. It looks better there than it is, since these numbers chose it."
