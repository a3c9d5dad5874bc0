"""The recommendation in words: one sentence, and what it rests on.

Promises: no figure of the test split without its interval; what is missing is named by number, label and
cell; where no shortcut check could be made, the sentence says so.
"""

from collections.abc import Callable, Mapping, Sequence

from monitorbench.metrics.choice.facts import AtTest, MoreFacts, Option, PromiseKept, Recommendation, Rival
from monitorbench.report.stress.table import answer, worst_lines
from monitorbench.report.tables.numbers import (
    DASH,
    MINUS,
    amount,
    amount_interval,
    counted,
)
from monitorbench.report.tables.points import percent, threshold

_NAMED = 3
"""So many cells are named in one sentence."""
_MUCH = 1.1
"""A cost is told of where it is so many times another."""
RIVALS: Mapping[str, str] = {"nothing": "flagging nothing", "everything": "flagging everything"}


def sentence(found: Recommendation) -> str:
    """The answer in one sentence."""
    without = "" if found["shortcuts"]["checked"] else f" {_no_checks(found)}"
    match found["decision"]:
        case "recommend":
            return f"{_deploy(found)}{without}"
        case "insufficient":
            more = found["more"]
            assert more is not None
            return f"{_insufficient(found, more)}{without}"
        case "none":
            return f"{_none(found)}{without}"


def remarks(found: Recommendation) -> list[str]:
    """What the sentence rests on, a sentence each."""
    listed = [*_runner_up(found), *_beaten(found), *_changing(found), *_bound(found), *_regretted(found)]
    return [*listed, *_robust(found), *_interventions(found), *_counting(found)]


def called(monitor: str | None, prompt: str | None, options: Sequence[Option]) -> str:
    """The monitor, with its prompt where it was run with several."""
    several = len({one["prompt"] for one in options if one["monitor"] == monitor}) > 1
    return f"{monitor} ({prompt} prompt)" if several else f"{monitor}"


def best(found: Recommendation) -> str:
    """The monitor that the answer is about."""
    return called(found["monitor"], found["prompt"], found["options"])


def in_1000(value: float | None, bounds: Sequence[float] | None) -> str:
    """`2.0 [1.2–3.1]`: samples of 1,000."""
    if value is None:
        return DASH
    inside = f" [{_some(bounds[0])}{DASH}{_some(bounds[1])}]" if bounds else ""
    return f"{_some(value)}{inside}"


def _some(value: float) -> str:
    if value >= 9.95:
        return f"{value:,.0f}"
    text = f"{value:.1f}" if value >= 0.095 or value == 0 else f"{float(f'{value:.1g}'):f}".rstrip("0")
    return "0" if value == 0 else text


def signed_amount(value: float | None, bounds: Sequence[float] | None) -> str:
    """`−0.31 [−0.42, −0.20]`: a difference in cost."""
    if value is None:
        return DASH
    inside = f" [{_sign(bounds[0])}, {_sign(bounds[1])}]" if bounds else ""
    return f"{_sign(value)}{inside}"


def _sign(value: float) -> str:
    return f"{MINUS if value < 0 else '+' if value > 0 else ''}{amount(abs(value))}"


def promised(kept: PromiseKept) -> str:
    """`≤ 5 % false alarms promised with 95 % confidence`."""
    sure = "on average" if kept["delta"] is None else f"with {percent(1 - kept['delta'])} % confidence"
    return f"≤ {percent(kept['alpha'])} % false alarms promised {sure}"


def _deploy(found: Recommendation) -> str:
    at, kept = found["at_test"], found["promise"]
    assert at is not None
    how = "to intervene" if found["mode"] == "intervene" else "to watch"
    promise = f"; {promised(kept)}" if kept is not None else ""
    return (
        f"Deploy {best(found)} {how}, flag above {threshold(found['threshold'])}: of 1,000 samples at a base "
        f"rate of {percent(found['settings']['base_rate'])} % it misses "
        f"{in_1000(at['missed_per_1000'], at['missed_per_1000_ci'])} and flags "
        f"{in_1000(at['false_alarms_per_1000'], at['false_alarms_per_1000_ci'])} benign ones{promise}."
    )


def _insufficient(found: Recommendation, more: MoreFacts) -> str:
    of, wanted = _cells(more["by_cell"]), counted(more["n"], f"more {more['label']} question")
    match more["why"]:
        case "promise":
            for_what = "for a threshold that keeps the promised false alarms"
        case "budget":
            for_what = "for a threshold that is shown to keep the budget of alerts"
        case "difference":
            nearest = _nearest(found["rivals"])
            assert nearest is not None
            gap = signed_amount(nearest["difference"], nearest["difference_ci"])
            where = "in both splits" if more["split"] == "both" else f"in the {more['split']} split"
            return (
                f"Insufficient data: about {wanted} of {of} {where}. {best(found)} costs less than "
                f"{_rival(nearest)} so far ({gap} a sample), not beyond doubt."
            )
    return f"Insufficient data: {wanted} of {of} in the calibration split, {for_what}."


def _cells(by_cell: Mapping[str, int]) -> str:
    """`a/b`, or `a/b (12), c/d (9) and 3 more cells (20)`."""
    if len(by_cell) == 1:
        return next(iter(by_cell))
    listed = list(by_cell.items())
    named = [f"{name} ({n:,})" for name, n in listed[:_NAMED]]
    rest = listed[_NAMED:]
    if not rest:
        return f"{', '.join(named[:-1])} and {named[-1]}"
    return f"{', '.join(named)} and {counted(len(rest), 'more cell')} ({sum(n for _, n in rest):,})"


def _none(found: Recommendation) -> str:
    if found["monitor"] is None:
        reasons = "; ".join(f"{one['monitor']}: {one['reason']}" for one in found["options"][:_NAMED])
        return f"Deploy none of these: {reasons}."
    nearest = _nearest(found["rivals"])
    if nearest is None:
        return (
            f"Deploy none of these: {best(found)}, the cheapest on the calibration split, can't be compared."
        )
    if _is_beaten(nearest):
        return (
            f"Deploy none of these: on the calibration split {best(found)}, the cheapest, costs no less than "
            "flagging nothing or everything."
        )
    worst = max(found["rivals"], key=order_of(found))
    gap = signed_amount(worst["difference"], worst["difference_ci"])
    return (
        f"Deploy none of these: {best(found)}, the cheapest, is not shown to beat {_rival(worst)} "
        f"(expected cost {gap} a sample)."
    )


def _no_checks(found: Recommendation) -> str:
    return f"Shortcut checks were impossible: {found['shortcuts']['reason']}."


def order_of(found: Recommendation) -> Callable[[Rival], float]:
    """What orders rivals by how little they are beaten: by the difference where none is recommended."""
    return _difference if found["decision"] == "none" else _upper_bound


def _difference(one: Rival) -> float:
    return one["difference"] if one["difference"] is not None else float("inf")


def _upper_bound(one: Rival) -> float:
    return one["difference_ci"][1] if one["difference_ci"] else float("inf")


def spoken(name: str) -> str:
    """A shortcut check's name in a sentence."""
    return name.replace("_", " ")


def _nearest(rivals: Sequence[Rival]) -> Rival | None:
    """The one that the monitor is least shown to beat."""
    return max(rivals, key=_upper_bound, default=None)


def _is_beaten(one: Rival) -> bool:
    return one["difference_ci"] is not None and one["difference_ci"][1] < 0


def _rival(one: Rival) -> str:
    if one["name"] == "all_shortcuts":
        return "all shortcut checks together"
    if one["is_shortcut"]:
        return f"the shortcut check {spoken(one['name'])}"
    return RIVALS[one["name"]]


def _runner_up(found: Recommendation) -> list[str]:
    second = next(
        (
            one
            for one in found["options"]
            if (one["monitor"], one["prompt"]) == (found["runner_up"], found["runner_up_prompt"])
        ),
        None,
    )
    if second is None:
        return (
            ["There is no runner-up: no other monitor has a threshold to take."] if found["monitor"] else []
        )
    name = called(second["monitor"], second["prompt"], found["options"])
    bounds = second["difference_ci"]
    gap = signed_amount(second["difference"], bounds)
    if bounds is None:
        return [f"Runner-up: {name}."]
    said = (
        "is worse"
        if bounds[0] > 0
        else "is better on the test split"
        if bounds[1] < 0
        else "is not shown worse"
    )
    return [f"Runner-up: {name}, flag above {threshold(second['threshold'])}; it {said} ({gap} a sample)."]


def _beaten(found: Recommendation) -> list[str]:
    if found["decision"] != "recommend" or not found["rivals"]:
        return []
    nearest = _nearest(found["rivals"])
    assert nearest is not None
    checks = [spoken(one["name"]) for one in found["rivals"] if one["is_shortcut"]]
    fitted = {
        "train": "",
        "calibration": ", fitted on the calibration split, since there is no train split with both labels",
        "": "",
    }[found["shortcuts"]["fitted_on"]]
    whom = (
        f"flagging nothing and the shortcut checks ({', '.join(checks)}{fitted})"
        if checks
        else "flagging nothing"
    )
    return [
        f"It costs less than {whom}, each at its own best threshold; least surely than {_rival(nearest)}: "
        f"{signed_amount(nearest['difference'], nearest['difference_ci'])} a sample."
    ]


def _changing(found: Recommendation) -> list[str]:
    """At which base rate and which cost of a miss another answer would cost least."""
    if found["monitor"] is None:
        return []
    told = []
    low, high = found["settings"]["base_rates"]
    for one in found["changes"]:
        instead = RIVALS.get(one["instead"]) or called(one["instead"], one["prompt"], found["options"])
        if one["what"] == "base_rate":
            inside = " (inside your range)" if low <= one["at"] <= high else ""
            told.append(f"{one['way']} a base rate of {percent(one['at'])} %{inside}, {instead}")
        else:
            told.append(f"{one['way']} {amount(one['at'])} for a miss, {instead}")
    if not told:
        return ["No other base rate or cost of a miss would change the answer."]
    return [f"Another would cost least: {'; '.join(told)}."]


def _bound(found: Recommendation) -> list[str]:
    """Where the promise, or the budget, keeps a much cheaper threshold out."""
    costs = [one["calibration_cost"] for one in found["options"] if one["calibration_cost"] is not None]
    if found["unbound_cost"] is None or not costs or min(costs) < _MUCH * found["unbound_cost"]:
        return []
    is_free = found["settings"]["alerts_per_day"] is None and found["settings"]["money_per_day"] is None
    held = "The promise" if is_free else "What is promised or can be afforded"
    return [
        f"{held} binds: at any threshold the least cost on the calibration split would be "
        f"{amount(found['unbound_cost'])}, not {amount(min(costs))} a sample (recommend.promise=false)."
    ]


def _regretted(found: Recommendation) -> list[str]:
    of = found["regret"]
    if of["mean"] is None or of["share_same"] is None or found["decision"] == "none":
        return []
    return [
        f"Regret of the choice: {amount(of['mean'])} a sample on average, {amount(of['high'])} in the worst "
        f"5 % of {of['n']:,} redraws of the calibration split; it was chosen in "
        f"{100 * of['share_same']:.0f} % of them."
    ]


def _robust(found: Recommendation) -> list[str]:
    """What changes that keep the label do to the monitor that the answer is about."""
    if found["monitor"] is None:
        return []
    about = (found["monitor"], found["prompt"])
    (option,) = [one for one in found["options"] if (one["monitor"], one["prompt"]) == about]
    of = option["robustness"]
    if of is None:
        if found["decision"] != "recommend":
            return []
        return ["It was not stressed, so nothing is known of it under changes that keep the label."]
    said = f"Stressed with changes that keep the label, {read_where(option)}: {answer(of)}."
    worst = worst_lines(of)
    return [said, f"The worst of each measure: {'; '.join(worst)}."] if worst else [said]


def read_where(option: Option) -> str:
    """Where labels were read that its robustness is of."""
    if option["robustness_at"] == "answers":
        return "read by its own answers"
    return f"read at {threshold(option['threshold'])}"


def _interventions(found: Recommendation) -> list[str]:
    pilot = found["pilot"]
    if pilot is None:
        if found["decision"] != "recommend":
            return []
        return ["No pilot was given (recommend.pilot), so nothing is known of letting it intervene."]
    return [f"The pilot, of {pilot['agent']} with {pilot['condition']}: {pilot['sentence']}"]


def _counting(found: Recommendation) -> list[str]:
    """What the figures are of, and how samples without a score were counted."""
    lost = [one for one in found["options"] if one["n_unscored"]]
    listed = []
    if lost:
        how = {"wrong": "count as wrong", "flag": "count as flagged", "pass": "count as passed"}
        names = ", ".join(
            f"{called(one['monitor'], one['prompt'], found['options'])} {one['n_unscored']:,}"
            for one in lost[:_NAMED]
        )
        listed.append(f"Test samples without a score {how[found['settings']['unscored']]} ({names}).")
    at = found["at_test"]
    if at is not None and at["expected_cost"] is not None:
        listed.append(_expected(found, at))
    return listed


def _expected(found: Recommendation, at: AtTest) -> str:
    """The expected cost, and the alerts a day where their number is known."""
    settings = found["settings"]
    said = (
        f"{best(found)} is expected to cost {amount(at['expected_cost'])} "
        f"{amount_interval(at['expected_cost_ci'])} a sample over {found['n_test']:,} test samples (a miss "
        f"{amount(settings['cost_miss'])}, a false alarm {amount(settings['cost_alarm'])}, an audit "
        f"{amount(settings['cost_audit'])})"
    )
    means = found["positive_means"]
    meant = "" if means in ("", "misbehavior") else f" Misbehavior is here “{means}”."
    if settings["samples_per_day"] is None or at["alerts_per_1000"] is None:
        return f"{said}.{meant}"
    scale = settings["samples_per_day"] / 1000
    around = [scale * one for one in at["alerts_per_1000_ci"]] if at["alerts_per_1000_ci"] else None
    return f"{said}; {in_1000(scale * at['alerts_per_1000'], around)} alerts a day.{meant}"
