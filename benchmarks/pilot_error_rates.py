"""How often the pilot's decision errs: 2,000 simulated pilots of each kind, beside the plain percentiles.

    python benchmarks/pilot_error_rates.py [PILOTS]

Each pilot has 50 tasks and one or three seeds. Where ΔSuccess is 0 (p = p*) an interval wholly above 0 is a
false "intervene"; at 95 % it may come in 2.5 % of the pilots. Prints a table and writes
`runs/benchmarks/pilot_error_rates/rates.json`.
"""

import json
import sys
from typing import NamedTuple

import numpy as np
from measure import ROOT

from monitorbench.intervention.statistics.decision_rule import borne_out
from monitorbench.intervention.statistics.intervals import EffectIntervals, effect_intervals, effect_tails
from monitorbench.intervention.statistics.matched import Table
from monitorbench.intervention.statistics.resampling import draw_rates, swap_test

WORK = ROOT / "runs" / "benchmarks" / "pilot_error_rates"
PILOTS, TASKS, DRAWS = 2000, 50, 2000
AT_ONCE = 250
NAMES = tuple(f"{i:03}" for i in range(TASKS))


class Scenario(NamedTuple):
    """How a task's runs come about: a failing or succeeding baseline, and whether a task takes to it."""

    name: str
    p: float
    r: float
    d: float
    seeds: int
    takers: float
    """Share of the tasks at which recoveries happen at all; the others' have none."""
    victims: float
    """Share of the tasks at which disruptions happen."""

    def cells(self, n: int, seed: int) -> np.ndarray:
        """Pairs in A, B, C, D: [n, tasks, 4]."""
        rng = np.random.default_rng(seed)
        fails = rng.random((n, TASKS)) < self.p  # all seeds of a task start alike
        recovers = np.where(rng.random((n, TASKS)) < self.takers, self.r / self.takers, 0)
        disrupts = np.where(rng.random((n, TASKS)) < self.victims, self.d / self.victims, 0)
        changed = rng.binomial(self.seeds, np.where(fails, recovers, disrupts))
        kept, none = self.seeds - changed, np.zeros_like(changed)
        return np.where(
            fails[..., None],
            np.stack([kept, none, changed, none], axis=-1),
            np.stack([none, changed, none, kept], axis=-1),
        )

    @property
    def delta(self) -> float:
        """The true ΔSuccess."""
        return self.p * self.r - (1 - self.p) * self.d


def at_p_star(
    name: str, r: float, d: float, seeds: int, takers: float = 1.0, victims: float = 1.0
) -> Scenario:
    """No gain and no loss."""
    return Scenario(name, d / (r + d), r, d, seeds, takers, victims)


SCENARIOS = (
    at_p_star("the paper's r and d", 0.119, 0.5625, 1),
    at_p_star("the paper's r and d", 0.119, 0.5625, 3),
    at_p_star("rare changes", 0.03, 0.2, 1),
    at_p_star("rare changes", 0.03, 0.2, 3),
    at_p_star("very rare changes", 0.01, 0.05, 1),
    at_p_star("very rare changes", 0.01, 0.05, 3),
    at_p_star("even", 0.25, 0.25, 1),
    at_p_star("even", 0.25, 0.25, 3),
    at_p_star("whole tasks", 0.2, 0.6, 3, takers=0.2, victims=0.6),
    at_p_star("thin gains, whole losses", 0.1, 0.6, 3, takers=1.0, victims=0.6),
    at_p_star("whole gains, thin losses", 0.1, 0.4, 3, takers=0.1, victims=1.0),
    Scenario("the paper's pilot", 0.893, 0.119, 0.5625, 1, 1.0, 1.0),
    Scenario("the paper's pilot", 0.893, 0.119, 0.5625, 3, 1.0, 1.0),
    Scenario("a gain", 0.8, 0.3, 0.1, 1, 1.0, 1.0),
    Scenario("a gain", 0.8, 0.3, 0.1, 3, 0.6, 0.5),
    Scenario("a loss", 0.2, 0.1, 0.4, 1, 1.0, 1.0),
    Scenario("a loss", 0.2, 0.1, 0.4, 3, 0.5, 0.8),
)


def main(pilots: int) -> None:
    """Simulate and print."""
    WORK.mkdir(parents=True, exist_ok=True)
    rows = []
    print(f"{'':<25} {'':>5} {'':>6}  {'intervene':>16}  {'do not':>16}  {'covers':>16}  p-p* covers")
    print(f"{'':<25} {'seeds':>5} {'points':>6}" + 3 * f"  {'plain':>7} {'ours':>8}")
    for number, scenario in enumerate(SCENARIOS):
        cells = scenario.cells(pilots, number)
        p_difference = scenario.p - scenario.d / (scenario.r + scenario.d)
        shown = {}
        for name, plain in (("plain", True), ("ours", False)):
            found = [
                one
                for start in range(0, pilots, AT_ONCE)
                for one in intervals(cells[start : start + AT_ONCE], plain)
            ]
            delta = np.array([one.delta_success for one in found])
            other = np.array([one.p_minus_p_star for one in found])
            shown[name] = {
                "intervene": float((delta[:, 0] > 0).mean()),
                "do_not_intervene": float((delta[:, 1] < 0).mean()),
                "covers": covers(delta, scenario.delta),
                "p_minus_p_star_covers": covers(other, p_difference),
            }
        rows.append({**scenario._asdict(), "delta_success": scenario.delta, "shares": shown})
        columns = [
            f"{100 * shown['plain'][key]:6.1f}% {100 * shown['ours'][key]:7.1f}%"
            for key in ("intervene", "do_not_intervene", "covers")
        ]
        print(
            f"{scenario.name:<25} {scenario.seeds:>5} {100 * scenario.delta:>6.1f}  {'  '.join(columns)}"
            f" {100 * shown['ours']['p_minus_p_star_covers']:10.1f}%",
            flush=True,
        )
    (WORK / "rates.json").write_text(
        json.dumps({"pilots": pilots, "tasks": TASKS, "draws": DRAWS, "scenarios": rows}, indent=2) + "\n"
    )


def intervals(cells: np.ndarray, plain: bool) -> list[EffectIntervals]:
    """Each pilot's intervals, with the draws in common; `plain`: no added tasks, no exact test."""
    tables = [Table(NAMES, one) for one in cells]
    drawn = draw_rates(tables, draws=DRAWS, seed=0, prior_tasks=0 if plain else 1)
    tests = [0.0 if plain else swap_test(one.changes) for one in tables]
    return [
        borne_out(effect_intervals(drawn, i, effect_tails(drawn, [i], 0.95)), p, 0.95)
        for i, p in enumerate(tests)
    ]


def covers(bounds: np.ndarray, truth: float) -> float:
    """The share of intervals [pilots, 2] that hold the truth."""
    return float(((bounds[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= bounds[:, 1])).mean())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PILOTS)
