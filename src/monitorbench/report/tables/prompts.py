"""One monitor under several prompts as rows of text, and the choice of a wording in rows and words."""

from collections.abc import Mapping
from typing import NamedTuple

from monitorbench.metrics.prompts import WordingChoice, shared_numbers, spread_of
from monitorbench.metrics.results import Results, short_names
from monitorbench.metrics.table import SHARED, Numbers, Place, Table
from monitorbench.metrics.written import (
    DASH,
    count,
    interval,
    interval_of,
    rate,
    rate_with_interval,
    shown,
    signed_interval,
    signed_with_interval,
    value_of,
)

METRICS = ("n_unscored", "miss_rate", "false_alarm_rate", "auroc")
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
    names, table, blocks = short_names(results), results["table"], []
    for monitor in table.monitors():
        if by_prompt := shared_numbers(table, monitor):
            base = next(iter(by_prompt))
            rows = [
                PromptRow(
                    prompt, [shown(of[name]) for name in METRICS], _differences(table, monitor, prompt, base)
                )
                for prompt, of in by_prompt.items()
            ]
            spread = _spread_in_words(table, monitor, by_prompt)
            blocks.append(PromptBlock(names[monitor], by_prompt[base]["n"].whole, base, rows, spread))
    return blocks


def _differences(table: Table, monitor: str, prompt: str, base: str) -> list[str]:
    minus = table.numbers(Place(monitor, prompt, SHARED, against=base))
    return [shown(minus[f"{name}_difference"]) for name in METRICS[1:]] if minus else []


def _spread_in_words(table: Table, monitor: str, by_prompt: Mapping[str, Numbers]) -> str:
    """Say how far apart prompts lie; empty with fewer than two prompts with an AUROC."""
    for highest, lowest, numbers in table.prompts_apart(monitor, "auroc_spread"):
        spread = numbers["auroc_spread"]
        low, high = (value_of(by_prompt[name]["auroc"]) for name in (lowest, highest))
        rates = ", ".join(
            f"of {short} {rate(value)}"
            for short, metric in (("MR", "miss_rate"), ("FAR", "false_alarm_rate"))
            if (value := spread_of(by_prompt, metric)) is not None
        )
        return (
            f"The wording alone moves AUROC from {low} ({lowest}) to {high} ({highest}): a spread of "
            f"{rate(spread.value)} {interval_of(spread)}".rstrip()
            + ("" if (spread.low or 0) > 0 else ", no difference found")
            + (f"; {rates}." if rates else ".")
        )
    return ""


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
