"""What a pilot prints in 80 columns: its decision, or where a critic fires in runs with marked mistakes.

The decision is two tables, what a reader must know, and the sentence last.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitorbench.config.terminal import Console
from monitorbench.intervention.recorded.localisation import Localisation, Located, RunShare
from monitorbench.intervention.statistics.decision_file import (
    WORDS,
    ConditionResult,
    PilotDecision,
    percent,
    points,
    remarks,
)
from monitorbench.metrics.written import DASH, rate, signed_with_interval
from monitorbench.report.tables.terminal import Columns, print_rows, say
from monitorbench.runs.files import write_json

LOCALISATION = "localisation.json"
_NAME = 21
_COUNTS: Columns = (
    ("condition", _NAME),
    ("tasks", 5),
    ("runs", 6),
    *((cell, 5) for cell in "ABCD"),
    *((name, 3) for name in ("p", "r", "d", "p*")),
)
_EFFECTS: Columns = (
    ("condition", _NAME),
    ("ΔSuccess, points", 20),
    ("p − p*", 17),
    ("Holm", 5),
    ("decision", 12),
)


def print_decision(console: Console, decision: PilotDecision) -> None:
    """Counts, effects, notes and the sentence; controls are marked with a star."""
    confidence = percent(decision.settings.interval_confidence)
    say(console, "Runs without → with: A failed twice, B disrupted, C recovered, D succeeded twice", "bold")
    say(console, "Rates: p fails without, r of these recover, d of the others are disrupted", "bold")
    _table(console, _COUNTS, decision, _counts)
    say(console, "")
    say(
        console,
        f"Effect on success ({confidence} intervals; lower bounds of all conditions tried at once)",
        "bold",
    )
    _table(console, _EFFECTS, decision, _effects)
    if any(result.control for result in decision.conditions):
        say(console, "* control: shown for comparison, never chosen", "dim")
    for text in remarks(decision):
        say(console, text, "dim")
    say(console, "")
    say(console, decision.sentence, "bold")


def _counts(one: ConditionResult) -> list[str]:
    cells = one.counts
    return [
        _name(one),
        f"{one.n_tasks}",
        f"{one.n_runs}",
        *map(str, (cells.A, cells.B, cells.C, cells.D)),
        *map(rate, (one.p, one.r, one.d, one.p_star)),
    ]


def _effects(one: ConditionResult) -> list[str]:
    delta, ci = one.delta_success, one.delta_success_ci
    return [
        _name(one),
        DASH if delta is None or ci is None else f"{points(delta)} [{points(ci[0])}, {points(ci[1])}]",
        signed_with_interval(one.p_minus_p_star, one.p_minus_p_star_ci),
        _p_value(one.swap_p_holm),
        WORDS[one.decision],
    ]


def _p_value(value: float | None) -> str:
    if value is None:
        return DASH
    return "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def _name(one: ConditionResult) -> str:
    return f"{one.condition}{'*' if one.control else ''}"


def _table(
    console: Console, columns: Columns, decision: PilotDecision, row: Callable[[ConditionResult], list[str]]
) -> None:
    last_number = len(columns) if columns is _COUNTS else 0
    for agent in dict.fromkeys(result.agent for result in decision.conditions):
        say(console, agent, "bold")
        head = [name for name, _ in columns]
        print_rows(console, columns, [head], "dim", gap=1, last_number=last_number)
        rows = [row(result) for result in decision.conditions if result.agent == agent]
        print_rows(console, columns, rows, gap=1, last_number=last_number)


def write_localisation(folder: Path, localisation: Localisation) -> None:
    """Write `localisation.json`.

    `tables.<subset>.n` counts runs; `tables.<subset>.strategies.<name>.<share>` is in [0, 1] (`beyond_random`
    in [-1, 1]), `<share>_ci` its interval, or null where there can be none.
    """
    write_json(folder / LOCALISATION, as_json(localisation))


def as_json(localisation: Localisation) -> dict[str, Any]:
    """Return the content of `localisation.json`."""
    return {
        "n_unreachable": localisation.n_unreachable,
        "step_coverage": localisation.step_coverage,
        "tables": {
            subset: {
                "n": table.n,
                "strategies": {name: _fields(row) for name, row in table.strategies.items()},
            }
            for subset, table in localisation.tables.items()
        },
    }


def as_lines(localisation: Localisation) -> list[str]:
    """Return lines of at most 80 columns: how often each strategy fires at the marked step."""
    lines = []
    for subset, table in localisation.tables.items():
        lines += [f"{subset}, {table.n} runs: first fires at the marked step, within one of it (%)"]
        for name, row in table.strategies.items():
            lines.append(f"  {name:<24}{_percent(row.exact):<26}{_percent(row.within_one)}")
    return lines


def _fields(row: Located) -> dict[str, Any]:
    shares: dict[str, RunShare] = row._asdict()
    values = {name: share.value for name, share in shares.items()}
    bounds = {f"{of}_ci": list(share.interval) if share.interval else None for of, share in shares.items()}
    return {**values, **bounds}


def _percent(share: RunShare) -> str:
    value = f"{100 * share.value:.1f}"
    if share.interval is None:
        return value
    return f"{value} ({100 * share.interval.low:.1f} to {100 * share.interval.high:.1f})"
