"""Does letting the monitor intervene help or hurt? (`decide`)"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from monitorbench.config.base import UserError
from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.outcomes import BASELINE, Outcome, outcomes_of, read_outcomes
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_file import PilotDecision
from monitorbench.intervention.statistics.decision_rule import Decision
from monitorbench.intervention.statistics.effect import CELLS
from monitorbench.library.inputs import Estimate, ResultRow, Shown
from monitorbench.metrics.rates import Interval


@dataclass(frozen=True, slots=True, repr=False)
class PilotResult(Shown):
    """The decision, and the rates that it was read off."""

    decision: Decision
    """`intervene`, `do_not_intervene` or `inconclusive`."""
    sentence: str
    p: Estimate
    """Share of runs that fail without intervention."""
    r: Estimate
    """Of these, the share that the intervention recovers; undefined where none failed."""
    d: Estimate
    """Of the others, the share that it disrupts; undefined where all failed."""
    p_star: Estimate
    """The p above which intervening pays, d / (r + d)."""
    delta_success: Estimate
    """Success with intervention less success without, in [-1, 1]; the decision is read off its interval."""
    n_tasks: int
    counts: dict[str, int]
    """Pairs of runs, baseline → treated: A fail → fail, B success → fail, C fail → success, D the rest."""
    details: PilotDecision
    """Everything that `decision.json` holds."""

    def _title(self) -> str:
        return self.sentence

    def _rows(self) -> Sequence[ResultRow]:
        return (
            ResultRow("p", repr(self.p), "fails without intervention"),
            ResultRow("r", repr(self.r), "of these recovered"),
            ResultRow("d", repr(self.d), "of the others disrupted"),
            ResultRow("p*", repr(self.p_star), "above it intervening pays"),
            ResultRow("Δ success", repr(self.delta_success), f"{self.n_tasks} tasks"),
        )


def decide(outcomes: Any, **statistics: Any) -> PilotResult:
    """The decision of a pilot: matched runs of an agent with and without intervention.

        decide("outcomes.jsonl")
        decide({"A": 13, "B": 1, "C": 10, "D": 140})

    Args:
        outcomes: an outcomes file (`.jsonl`, `.csv`), its rows as mappings, a data frame with its columns, or
            the four counts of matched runs as a mapping, each run a task of its own.
        statistics: settings of the rule: `margin` (points), `confidence`, `draws`, `seed`, `p_target`, …
            (`pilot.statistics` in the settings).

    Raises:
        ValueError: for a row that is no outcome, runs without a match, and a setting that is none.

    """
    try:
        settings = PilotStatistics(**statistics)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    try:
        analysis = analyse(_runs(outcomes), settings)
    except UserError as error:
        raise ValueError(str(error)) from None
    return PilotResult(
        decision=analysis.decision,
        sentence=analysis.sentence,
        p=_estimate(analysis.p, analysis.p_ci),
        r=_estimate(analysis.r, analysis.r_ci),
        d=_estimate(analysis.d, analysis.d_ci),
        p_star=_estimate(analysis.p_star, analysis.p_star_ci),
        delta_success=_estimate(analysis.delta_success, analysis.delta_success_ci),
        n_tasks=analysis.n_tasks,
        counts=analysis.counts.model_dump(),
        details=analysis,
    )


def _runs(outcomes: Any) -> list[Outcome]:
    if isinstance(outcomes, str | Path):
        return read_outcomes(Path(outcomes))
    if isinstance(outcomes, Mapping):
        return _of_counts(outcomes)
    if isinstance(outcomes, Iterable) and not hasattr(outcomes, "columns"):
        rows: list[Any] = list(outcomes)
        if rows and all(isinstance(row, Outcome) for row in rows):
            return rows
        return outcomes_of(rows)
    return outcomes_of(_rows_of_a_frame(outcomes))


def _rows_of_a_frame(frame: Any) -> list[dict[str, Any]]:
    import narwhals as nw

    table = nw.from_native(frame, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        raise ValueError(
            f"outcomes: {type(frame).__name__}; expected a file, a data frame, rows, or the counts A to D"
        )
    rows: list[dict[str, Any]] = table.rows(named=True)
    return rows


def _of_counts(counts: Mapping[str, Any]) -> list[Outcome]:
    if set(counts) != set(CELLS):
        raise ValueError(f"outcomes: {', '.join(map(str, counts))}; expected the counts {', '.join(CELLS)}")
    runs = []
    for position, cell in enumerate(CELLS):
        n = counts[cell]
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ValueError(f"outcomes: {cell}={n!r}; expected a whole number of matched runs")
        with_it, without = divmod(position, 2)
        for i in range(n):
            for condition, success in ((BASELINE, without), ("intervention", with_it)):
                runs.append(Outcome(f"{cell}{i:09d}", 0, "agent", condition, bool(success), 0, 0, 0))
    if not runs:
        raise ValueError("outcomes: all counts are 0; expected matched runs")
    return runs


def _estimate(value: float | None, interval: tuple[float, float] | None) -> Estimate:
    return Estimate(value, None if interval is None else Interval(*interval))
