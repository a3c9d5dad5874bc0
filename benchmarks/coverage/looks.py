"""A gate and a drift alarm that are asked every day: false alarms over all days, and how soon a change shows.

Scores are normal, a pair a question; a share of their variance is the judge's noise, drawn anew each day. One
change comes with the first look, the other after many. Beside it stands what a repeated test says: the
exact swap of each day's answers with those that were frozen, at the same level each day.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy.special import expit, logsumexp
from scipy.stats import ks_2samp, norm

from benchmarks.coverage import Cell, Table, means
from monitorbench.config.deployment import Gate
from monitorbench.gate.change import BETS, auroc_change, has_moved, needed
from monitorbench.gate.traffic import LastAnchors, compare_traffic
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.significance import group_swap_p, holm

N_PAIRS = 200
LEVEL, DRIFT_LEVEL = Gate().level, Gate().drift_level
LIMIT = float(norm.isf(0.04))
CHANGES = ("nothing", "scores +0.5 SD", "FAR from 5 to 10 %", "AUROC −.05")


def tables(seed: int, effort: float) -> Iterator[Table]:
    """False alarms in a year and delay of a gate, then of the drift alarm, then what changed."""
    yield _gates(seed, max(4, round(100 * effort)))
    yield _drifts(np.random.default_rng([seed, 44]), max(4, round(100 * effort)))
    yield _changed(np.random.default_rng([seed, 45]), max(10, round(100 * effort)))


def _gates(seed: int, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    for noise, (change, first, last) in product(
        (0.01, 0.1),
        (("nothing", 366, 365), *((change, day, day + 9) for change in CHANGES[1:] for day in (1, 60))),
    ):
        rng = np.random.default_rng([seed, 43, len(rows)])
        n_drawn = n_runs if change == "nothing" else max(4, n_runs // 4)
        draws = [_days_of_alarm(rng, noise, change, first, last) for _ in range(n_drawn)]
        cells: list[Cell] = []
        for days in zip(*draws, strict=True):
            early = float(np.mean([day is not None and day < first for day in days]))
            late = [day - first for day in days if day is not None and day >= first]
            cells += [early, None if change == "nothing" else len(late) / n_drawn]
            cells.append(float(np.median(late)) if late else None)
        rows.append([change, f"{noise:.0%}", first if change != "nothing" else None, n_drawn, *cells])
    return Table(
        "A gate that is asked every day",
        "what changed | noise | from day | gates | alarms before | found within 10 days | median days | "
        "repeated test: alarms before | found | median days",
        rows,
        f"{N_PAIRS} pairs, AUROC .95, FAR 4 %, alarms by evidence on AUROC, MR or FAR at {LEVEL:g} over all "
        "days. Where nothing changes a gate is asked on 365 days, its AUROC once a week. The repeated test "
        "has Holm's correction within a day.",
    )


def _days_of_alarm(
    rng: np.random.Generator, noise: float, change: str, first: int, last: int
) -> tuple[int | None, int | None]:
    """The day on which the gate says that a monitor is worse, and a repeated test; None where on none."""
    n = 2 * N_PAIRS
    is_bad, groups, own = np.arange(n) % 2 == 0, np.arange(n) // 2, rng.normal(size=n)
    looks = np.stack(
        [_asked(rng, own, is_bad, noise, change if day >= first else "") for day in range(last + 1)]
    )
    flagged = (looks > LIMIT).astype(np.float64)
    ours = repeated = None
    wrong = [(flagged != label)[:, rows] for label, rows in ((1.0, is_bad), (0.0, ~is_bad))]
    of_rates: FloatArray = np.max([rate_evidence(of_label) for of_label in wrong], axis=0)
    for day in range(1, last + 1):
        so_far = flagged[: day + 1]
        if repeated is None:
            risen = [
                _swap_p((so_far[-1] != label)[rows], (so_far[0] != label)[rows])
                for label, rows in ((1.0, is_bad), (0.0, ~is_bad))
            ]
            if min(holm(risen)) <= LEVEL:
                repeated = day
        if ours is None:
            evidence = float(of_rates[day])
            if change != "nothing" or day % 7 == 0:
                evidence = max(evidence, auroc_change(looks[: day + 1], is_bad, groups, 0.05).evidence or 0.0)
            if evidence >= needed(day, LEVEL / 3):
                ours = day
        if ours is not None and repeated is not None:
            break
    return ours, repeated


def rate_evidence(is_wrong: BoolArray) -> FloatArray:
    """`gate.change.evidence_of_rise` of errors [looks, groups] at each look [looks], all looks at once.

    A group's mean of exp(λx) over its looks needs its number of errors alone.
    """
    x, n = is_wrong.astype(np.float64), np.arange(1, len(is_wrong) + 1)[:, None]
    k = np.cumsum(x, axis=0)
    mean = k / n
    units = np.sqrt((k * (1 - mean)).sum(axis=1, keepdims=True) / (n * x.shape[1]))
    logs = []
    for looked, sign in ((x, 1.0), (x[0], -1.0)):
        for bet in BETS:
            at = sign * bet / np.where(units, units, np.inf)
            over = np.log((k * np.exp(at * (1 - mean)) + (n - k) * np.exp(-at * mean)) / n)
            logs.append((at * (looked - mean) - over).sum(axis=1))
    evidence: FloatArray = np.exp(np.minimum(logsumexp(logs, axis=0) - np.log(len(logs)), 700))
    return evidence


def _swap_p(now: FloatArray, before: FloatArray) -> float:
    """One side of the exact swap test of single samples."""
    changes = now.astype(np.int64) - before.astype(np.int64)
    half = group_swap_p(changes) / 2
    return half if changes.sum() > 0 else 1 - half


def _asked(
    rng: np.random.Generator, own: FloatArray, is_bad: FloatArray, noise: float, change: str
) -> FloatArray:
    apart, shift = np.sqrt(2) * norm.ppf(0.95), 0.0
    if change == CHANGES[1]:
        shift = 0.5
    elif change == CHANGES[2]:
        shift = float(norm.isf(0.05) - norm.isf(0.1))
    elif change == CHANGES[3]:
        apart = np.sqrt(2) * norm.ppf(0.9)
    drawn: FloatArray = np.sqrt(1 - noise) * own + np.sqrt(noise) * rng.normal(size=len(own))
    moved: FloatArray = drawn + is_bad * apart + shift
    return moved


def _traffic(rng: np.random.Generator, n: int, shift: float) -> list[float | None]:
    """Scores of two digits, so that there are ties, 1 % of them of misbehavior."""
    scores: list[float | None] = (
        expit(rng.normal(size=n) + 2.3 * (rng.random(n) < 0.01) + shift).round(2).tolist()
    )
    return scores


def _drifts(rng: np.random.Generator, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    for shift, n, (first, last) in product((0.0, 0.25, 0.5), (100, 500, 2_000), ((1, 10), (100, 110))):
        if not shift and first == 1:
            first, last = 366, 365
        draws = []
        for _ in range(n_runs):
            frozen = tuple(_traffic(rng, 1_000, 0.0))
            days = range(1 if not shift else first, last + 1)
            spans = {day: _traffic(rng, n, shift if day >= first else 0.0) for day in days}
            ours = [
                compare_traffic(frozen, now, None, level=DRIFT_LEVEL, look=day) for day, now in spans.items()
            ]
            again = (ks_2samp(frozen, now, method="asymp").pvalue for now in spans.values())
            plain = any(p <= DRIFT_LEVEL for p in again)
            draws.append([any(of.word == "DRIFTED" for of in ours), ours[0].word == "DRIFTED", plain])
        seen, at_once, repeated = means(draws)
        if first == 100 and not shift:
            continue
        name = f"+{shift:g} SD" if shift else "nothing, 365 days"
        rows.append([name, n, first if shift else None, n_runs, seen, at_once if shift else None, repeated])
    return Table(
        "A drift alarm that is asked every day",
        "drift | scores a day | from day | runs | an alarm within 10 days | on the first | repeated test",
        rows,
        f"1,000 scores frozen, {DRIFT_LEVEL:g} over all days. The repeated test is Kolmogorov and Smirnov's "
        f"at {DRIFT_LEVEL:g} each day.",
    )


def _changed(rng: np.random.Generator, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    for pairs, noise, look, drift in (
        (200, 0.05, 1, 0.5),
        (200, 0.05, 60, 0.5),
        (200, 0.3, 1, 0.5),
        (100, 0.05, 1, 0.5),
        (50, 0.05, 1, 0.5),
        (50, 0.3, 1, 0.5),
        (200, 0.05, 1, 0.25),
        (200, 0.3, 1, 0.25),
        (50, 0.3, 1, 0.25),
    ):
        wrong, left_open = list[float](), list[float]()
        for truth, moves in (
            ("traffic", ((0.0, drift), (0.0, -drift))),
            ("monitor", ((drift, 0.0), (-drift, 0.0))),
            ("both", ((drift, drift), (-drift, -drift), (drift, -2 * drift))),
        ):
            draws = [_said_to_change(rng, pairs, noise, look, *of) for of in moves for _ in range(n_runs)]
            alarms = [said for said in draws if said is not None]
            left_open.append(alarms.count("unknown") / len(alarms))
            wrong.append(1 - alarms.count(truth) / len(alarms) - left_open[-1])
        rows.append([pairs, f"{noise:.0%}", look, f"{drift:g} SD", *wrong, *left_open])
    return Table(
        "What changed, by traffic and anchors together",
        "pairs of anchors | noise | look | change | traffic: told wrongly | monitor | both | left open: "
        "traffic | monitor | both",
        rows,
        f"{n_runs} runs for each sign of a change; 1,000 scores frozen and now. The traffic moves, the "
        "monitor's, or both: alike, or the traffic's twice as far the other way. Shares are of the alarms; "
        "left open is what the anchors can't tell.",
    )


def _said_to_change(
    rng: np.random.Generator, pairs: int, noise: float, look: int, monitor: float, traffic: float
) -> str | None:
    """What an alarm at a look says has changed; None without one."""
    is_bad, own = np.arange(2 * pairs) % 2 == 0, rng.normal(size=2 * pairs)
    looks = np.stack([_asked(rng, own, is_bad, noise, "") for _ in range(look + 1)])
    looks[-1] += monitor
    groups = np.arange(2 * pairs) // 2
    moved = has_moved(looks, is_bad, groups, needed(look, LEVEL))
    last = LastAnchors(expit(looks[0]), expit(looks[-1]), groups, moved)
    frozen, now = _traffic(rng, 1_000, 0.0), _traffic(rng, 1_000, monitor + traffic)
    return compare_traffic(tuple(frozen), now, last, level=DRIFT_LEVEL, look=look).changed
