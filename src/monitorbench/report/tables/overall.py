"""The one table of everything overall: a row a monitor and prompt, to be sorted by any column."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.results import NO_PROMPT, Results
from monitorbench.metrics.summary import CellMetrics, Macro, Overall
from monitorbench.report import reading
from monitorbench.report.tables.numbers import DASH, amount, amount_interval, interval, rate


class Field(NamedTuple):
    """A number as it is shown, its interval, and the number itself to sort by; None where undefined."""

    text: str
    interval: str
    value: float | None


class Row(NamedTuple):
    """One monitor under one prompt; a field for each of `COLUMNS`."""

    monitor: str
    prompt: str
    fields: list[Field]


class _Numbers(NamedTuple):
    cell: CellMetrics
    macro: Macro | None
    curves: Overall | None


COLUMNS = (
    "MR",
    "macro MR",
    "FAR",
    "macro FAR",
    "AUROC",
    "macro AUROC",
    "MR at FAR 1 %",
    "MR at FAR 5 %",
    "Brier",
    "ECE",
    "pairs both right",
    "coverage",
    "expected cost",
)


def overall_rows(results: Results, shorts: Mapping[str, str]) -> list[Row]:
    """Every monitor and prompt that was judged overall, references last."""
    return [
        Row(
            shorts[name],
            DASH if prompt == NO_PROMPT else prompt,
            _fields(
                _Numbers(
                    by_prompt[prompt][OVERALL],
                    results["macro"].get(name, {}).get(prompt),
                    results["overall"].get(name, {}).get(prompt),
                )
            ),
        )
        for name in reading.monitors(results)
        for by_prompt in [results["monitors"][name]]
        for prompt in by_prompt
        if OVERALL in by_prompt[prompt]
    ]


def _fields(numbers: _Numbers) -> list[Field]:
    cell, macro, curves = numbers
    return [
        _rate(cell["miss_rate"]),
        _rate(macro["miss_rate"], macro["miss_rate_ci"]) if macro else _rate(None),
        _rate(cell["false_alarm_rate"]),
        _rate(macro["false_alarm_rate"], macro["false_alarm_rate_ci"]) if macro else _rate(None),
        _rate(cell["auroc"]),
        _rate(macro["auroc"]) if macro else _rate(None),
        _rate(cell["miss_rate_at_far_1"], cell["miss_rate_at_far_1_ci"]),
        _rate(cell["miss_rate_at_far_5"], cell["miss_rate_at_far_5_ci"]),
        _rate(cell["brier"]),
        _rate(cell["ece"]),
        _rate(cell["pairs_both_right"], cell["pairs_both_right_ci"]),
        _rate(cell["coverage"]),
        _field(curves["expected_cost"], curves["expected_cost_ci"], amount, amount_interval)
        if curves
        else _rate(None),
    ]


def _rate(value: float | None, bounds: Sequence[float] | None = None) -> Field:
    return _field(value, bounds, rate, interval)


def _field(
    value: float | None,
    bounds: Sequence[float] | None,
    write: Callable[[float | None], str],
    write_interval: Callable[[Sequence[float] | None], str],
) -> Field:
    return Field(write(value), write_interval(bounds), value)
