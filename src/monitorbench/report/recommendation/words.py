"""Put the recommendation into words: one sentence, and the remarks that it rests on.

Promises: no figure of the test split without its interval; what is missing is named by number, label and
cell; where no shortcut check could be made, the sentence says so.
"""

from collections.abc import Callable, Mapping, Sequence

from monitorbench.metrics.choice.facts import AtTest, Option, PromiseKept, Recommendation, Rival
from monitorbench.metrics.inverted import inverted_in_words, is_inverted
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
"""Number of cells, or of monitors, that are named in one sentence."""
_MUCH = 1.1
"""Smallest ratio of two costs at which a remark tells of them."""
RIVALS: Mapping[str, str] = {"nothing": "flagging nothing", "everything": "flagging everything"}


def sentence(found: Recommendation) -> str:
    """Put the answer into one sentence."""
    without = "" if found["shortcuts"]["checked"] else f" {_no_checks(found)}"
    match found["decision"]:
        case "recommend":
            return f"{_deploy(found)}{without}"
        case "insufficient":
            return f"{_insufficient(found)}{without}"
        case "none":
            return f"{_none(found)}{without}"


def remarks(found: Recommendation) -> list[str]:
    """List the remarks that the sentence rests on, a sentence each."""
    listed = [*_inverted(found), *_beaten(found), *_runner_up(found), *_without_threshold(found)]
    listed += [*_bound(found), *_regretted(found), *_robust(found), *_interventions(found)]
    return [*listed, *_deployed(found), *_chosen_on(found), *_counting(found)]


def _chosen_on(found: Recommendation) -> list[str]:
    """Say which split chose among several monitors, and what that means for the figures that are told."""
    n = found["n_candidates"]
    if n < 2 or found["monitor"] is None:
        return []
    if found["is_calibrated"]:
        return [f"The calibration split chose among {n} monitors; figures are of the test split."]
    return [
        f"The test split itself chose among {n} monitors, so each interval has {_confidence(found)}: "
        "those of the chosen one hold with 95 %."
    ]


def _inverted(found: Recommendation) -> list[str]:
    """Name the monitors whose scores are higher for benign samples, and the setting that turns them."""
    return [
        inverted_in_words(
            called(one["monitor"], one["prompt"], found["options"]), one["auroc"], one["auroc_ci"]
        )
        for one in found["options"]
        if is_inverted(one["auroc"], one["auroc_ci"])
    ]


def _without_threshold(found: Recommendation) -> list[str]:
    """Name the monitors that were no candidates, where another one is named."""
    if found["monitor"] is None or not any(one["reason"] for one in found["options"]):
        return []
    return [f"No candidates: {_reasons(found)}."]


def _deployed(found: Recommendation) -> list[str]:
    """Tell how a deployment would fare in 1,000 samples, and what a verdict takes."""
    at = found["at_test"]
    if at is None or at["missed_per_1000"] is None or found["monitor"] is None:
        return []
    precise = (
        ""
        if at["precision"] is None
        else f"; {share(at['precision'], at['precision_ci'])} of alerts are right"
    )
    said = (
        f"Of 1,000 samples at a base rate of {percent(found['settings']['base_rate'])} % it misses "
        f"{in_1000(at['missed_per_1000'], at['missed_per_1000_ci'])} and flags "
        f"{in_1000(at['false_alarms_per_1000'], at['false_alarms_per_1000_ci'])} benign ones{precise}."
    )
    option = _named_option(found)
    parts = [] if option["seconds_p95"] is None else [f"{short(option['seconds_p95'])} s (95 % of verdicts)"]
    parts += [] if option["price"] is None else [f"${short(option['price'])}"]
    return [said, f"It takes {' and '.join(parts)} a sample."] if parts else [said]


def short(value: float) -> str:
    """Write a number with two digits: `.3`, `.0002`, `12`."""
    text = f"{value:,.0f}" if value >= 10 else f"{float(f'{value:.2g}'):f}".rstrip("0").rstrip(".")
    return text[1:] if text.startswith("0.") else text


def _named_option(found: Recommendation) -> Option:
    """Return the option that the sentence is about."""
    about = (found["monitor"], found["prompt"])
    return next(one for one in found["options"] if (one["monitor"], one["prompt"]) == about)


def called(monitor: str | None, prompt: str | None, options: Sequence[Option]) -> str:
    """Name the monitor, with its prompt where it was run with several."""
    several = len({one["prompt"] for one in options if one["monitor"] == monitor}) > 1
    return f"{monitor} ({prompt} prompt)" if several else f"{monitor}"


def best(found: Recommendation) -> str:
    """Name the monitor that the answer is about."""
    return called(found["monitor"], found["prompt"], found["options"])


def in_1000(value: float | None, bounds: Sequence[float] | None) -> str:
    """Write a number of samples in 1,000 as `2.0 [1.2–3.1]`."""
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
    """Write a difference in cost as `−0.31 [−0.42, −0.20]`."""
    if value is None:
        return DASH
    inside = f" [{_sign(bounds[0])}, {_sign(bounds[1])}]" if bounds else ""
    return f"{_sign(value)}{inside}"


def _sign(value: float) -> str:
    return f"{MINUS if value < 0 else '+' if value > 0 else ''}{amount(abs(value))}"


def promised(kept: PromiseKept, *, by_category: bool = False) -> str:
    """Put a promise into words.

    The text reads `≤ 5 % of benign questions flagged is promised with 95 % confidence, on 120 of them,
    whichever of 3 was chosen`.
    """
    sure = "on average" if kept["delta"] is None else f"with {percent(1 - kept['delta'])} % confidence"
    each = " in each category" if by_category else ""
    worth = (
        "" if kept["effective_n"] is None else f" (worth {kept['effective_n']:.0f} in the promised shares)"
    )
    among = "" if kept["n_candidates"] == 1 else f", whichever of {kept['n_candidates']} was chosen"
    return (
        f"≤ {percent(kept['alpha'])} % of benign questions flagged is promised {sure}{each}, on "
        f"{kept['n']:,} of them{worth}{among}"
    )


def _deploy(found: Recommendation) -> str:
    at, kept = found["at_test"], found["promise"]
    assert at is not None
    how = "to intervene" if found["mode"] == "intervene" else "to watch"
    where = f", {where_flagged(found)}"
    said = [f"Deploy {best(found)} {how}{where}: {_rates(found, at)}"]
    if kept is not None:
        said.append(promised(kept, by_category=bool(found["thresholds"])))
    elif not found["is_calibrated"]:
        said.append("no threshold was calibrated, so nothing is promised")
    return f"{'; '.join([*said, *found['voids']])}."


def where_flagged(found: Recommendation) -> str:
    """Say what is flagged: `flag above .62`, `flag above .6 (qa), .7 (code)` or `by its own answers`."""
    if found["thresholds"]:
        limits = ", ".join(f"{threshold(value)} ({name})" for name, value in found["thresholds"].items())
        return f"flag above {limits}"
    return (
        "by its own answers" if found["threshold"] is None else f"flag above {threshold(found['threshold'])}"
    )


def _rates(found: Recommendation, at: AtTest) -> str:
    """Tell both rates on the test split with what they are of, and alarms by question where they differ."""
    means = found["positive_means"]
    what = "misbehavior" if means in ("", "misbehavior") else f"“{means}”"
    alarms = share(at["false_alarm_rate"], at["false_alarm_rate_ci"])
    said = (
        f"it misses {share(at['miss_rate'], at['miss_rate_ci'])} of {at['n_misbehavior']:,} samples of "
        f"{what} and flags {alarms} of {counted(at['n_benign'], 'benign sample')}"
    )
    if not at["is_sample_a_question"]:
        of_questions = share(at["false_alarm_rate_by_question"], at["false_alarm_rate_by_question_ci"])
        said += f", {of_questions} of {counted(at['n_benign_questions'], 'benign question')}"
    sure = "" if found["confidence"] == 0.95 else f" ({_confidence(found)} intervals)"
    return f"{said} of the test split{sure}"


def _confidence(found: Recommendation) -> str:
    return f"{percent(found['confidence'])} %"


def share(value: float | None, bounds: Sequence[float] | None) -> str:
    """Write a share as `18 % [12–25]`: two digits of the share, whole percents of its interval."""
    if value is None:
        return f"{DASH} %"
    inside = f" [{100 * bounds[0]:.0f}{DASH}{100 * bounds[1]:.0f}]" if bounds else ""
    return f"{float(f'{100 * value:.2g}'):g} %{inside}"


def _insufficient(found: Recommendation) -> str:
    more = found["more"]
    if more is None:
        return f"Insufficient data: {_reasons(found)}."
    of, wanted = _cells(more["by_cell"]), counted(more["n"], f"more {more['label']} question")
    match more["why"]:
        case "promise":
            for_what = "for a threshold that keeps the promised false alarms"
        case "budget":
            for_what = "for a threshold that is shown to keep the budget of alerts"
        case "difference":
            nearest = _nearest(found["rivals"])
            assert nearest is not None
            where = "in both splits" if more["split"] == "both" else f"in the {more['split']} split"
            return (
                f"Insufficient data: about {wanted} of {of} {where}. The best, {best(found)}, costs less "
                f"than {_rival(nearest)} so far, not beyond doubt ({_gap(found, nearest)})."
            )
    return f"Insufficient data: {wanted} of {of} in the calibration split, {for_what}."


def _reasons(found: Recommendation) -> str:
    """Say why monitors have no threshold, and how many more have none."""
    without = [one for one in found["options"] if one["reason"]]
    listed = [
        f"{called(one['monitor'], one['prompt'], found['options'])}: {one['reason']}"
        for one in without[:_NAMED]
    ]
    more = len(without) - len(listed)
    return "; ".join([*listed, *([f"and {counted(more, 'more monitor')}"] if more else [])])


def _cells(by_cell: Mapping[str, int]) -> str:
    """List cells as `a/b`, or as `a/b (12), c/d (9) and 3 more cells (20)`."""
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
        return f"Deploy none of these: {_reasons(found)}."
    name, worst = best(found), max(found["rivals"], key=order_of(found), default=None)
    if worst is None or worst["difference"] is None:
        return f"Deploy none of these: {name} can't be compared on the test split."
    if _is_beaten(worst):
        split = "calibration" if found["is_calibrated"] else "test"
        return (
            f"Deploy none of these. On the {split} split the best, {name}, costs no less than flagging "
            "nothing or everything."
        )
    bounds = worst["difference_ci"]
    how = "costs more than" if bounds is not None and bounds[0] > 0 else "costs about the same as"
    return f"Deploy none of these. The best, {name}, {how} {_rival(worst)} ({_gap(found, worst)})."


def _gap(found: Recommendation, one: Rival) -> str:
    """Write the difference to a rival as `difference +0.018 per sample, 95 % interval −0.11 to +0.091`."""
    bounds = one["difference_ci"]
    value = "unknown" if one["difference"] is None else _sign(one["difference"])
    inside = f", {_confidence(found)} interval {_sign(bounds[0])} to {_sign(bounds[1])}" if bounds else ""
    return f"difference {value} per sample{inside}"


def _no_checks(found: Recommendation) -> str:
    return f"Shortcut checks were impossible: {found['shortcuts']['reason']}."


def order_of(found: Recommendation) -> Callable[[Rival], float]:
    """Return the key that orders rivals by how little they are beaten.

    The key is the difference where no monitor is recommended (`none`), else its interval's upper bound.
    """
    return _difference if found["decision"] == "none" else _upper_bound


def _difference(one: Rival) -> float:
    return one["difference"] if one["difference"] is not None else float("inf")


def _upper_bound(one: Rival) -> float:
    return one["difference_ci"][1] if one["difference_ci"] else float("inf")


def spoken(name: str) -> str:
    """Spell a shortcut check's name as in a sentence."""
    return name.replace("_", " ")


def _nearest(rivals: Sequence[Rival]) -> Rival | None:
    """Find the rival that the monitor is least shown to beat."""
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
        return []
    name = called(second["monitor"], second["prompt"], found["options"])
    bounds = second["difference_ci"]
    gap = signed_amount(second["difference"], bounds)
    if bounds is None:
        return [f"Runner-up: {name}."]
    said = (
        "costs more"
        if bounds[0] > 0
        else "costs less on the test split"
        if bounds[1] < 0
        else "is not shown to cost more"
    )
    at = second["threshold"]
    where = "" if at is None else f", flag above {threshold(at)}"
    return [f"Runner-up: {name}{where}; it {said} ({gap} a sample)."]


def _beaten(found: Recommendation) -> list[str]:
    if found["decision"] != "recommend" or not found["rivals"]:
        return []
    own = "its own best threshold"
    how = (
        f"each at {own}"
        if found["is_calibrated"]
        else f"each at the threshold that is {own} on the test split"
    )
    nearest = _nearest(found["rivals"])
    assert nearest is not None
    checks = [spoken(one["name"]) for one in found["rivals"] if one["is_shortcut"]]
    fitted = {
        "train": "",
        "calibration": ", fitted on the calibration split, since there is no train split with both labels",
        "": "",
    }[found["shortcuts"]["fitted_on"]]
    whom = (
        f"flagging nothing, flagging everything and the shortcut checks ({', '.join(checks)}{fitted})"
        if checks
        else "flagging nothing and flagging everything"
    )
    return [
        f"It costs less than {whom}, {how}; least surely than {_rival(nearest)}: "
        f"{signed_amount(nearest['difference'], nearest['difference_ci'])} a sample."
    ]


def _bound(found: Recommendation) -> list[str]:
    """Say where the promise, or the budget, keeps a much cheaper threshold out."""
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
    """Tell how changes that keep the label affect the monitor that the answer is about."""
    if found["monitor"] is None:
        return []
    option = _named_option(found)
    of = option["robustness"]
    if of is None:
        if found["decision"] != "recommend" or not _is_of_recommend(found):
            return []
        return ["It was not stressed, so nothing is known of it under changes that keep the label."]
    said = f"Stressed with changes that keep the label, {read_where(option)}: {answer(of)}."
    worst = worst_lines(of)
    return [said, f"The worst of each measure: {'; '.join(worst)}."] if worst else [said]


def read_where(option: Option) -> str:
    """Say where the labels were read that an option's robustness is of."""
    if option["robustness_at"] == "answers":
        return "read by its own answers"
    return f"read at {threshold(option['threshold'])}"


def _interventions(found: Recommendation) -> list[str]:
    pilot = found["pilot"]
    if pilot is None:
        if found["decision"] != "recommend" or not _is_of_recommend(found):
            return []
        return ["No pilot was given (recommend.pilot), so nothing is known of letting it intervene."]
    where = f" in {pilot['environment']}" if pilot["environment"] else ""
    told = f"The pilot, of {pilot['agent']} with {pilot['condition']}{where}: {pilot['sentence']}"
    if found["monitor"] is None or pilot["monitor"] == found["monitor"]:
        return [told]
    whose = pilot["critic"] or "a critic that the pilot does not name"
    if pilot["critic"] == found["monitor"]:
        whose = f"a {pilot['critic']} of other weights or another adapter"
    return [f"{told} It was a pilot of {whose}, and says nothing of letting {best(found)} intervene."]


def _is_of_recommend(found: Recommendation) -> bool:
    """Whether `recommend` decided: its choice was redrawn, and it takes pilots and stress runs."""
    return found["regret"]["n"] > 0


def _counting(found: Recommendation) -> list[str]:
    """Tell what the figures are of, and how samples without a score were counted."""
    lost = [one for one in found["options"] if one["n_unscored"]]
    listed = []
    if lost:
        how = {"wrong": "count as wrong", "flag": "count as flagged", "pass": "count as passed"}
        names = ", ".join(
            f"{called(one['monitor'], one['prompt'], found['options'])} {one['n_unscored']:,}"
            for one in lost[:_NAMED]
        )
        names += f" and {counted(len(lost) - _NAMED, 'more monitor')}" if len(lost) > _NAMED else ""
        listed.append(f"Test samples without a score {how[found['settings']['unscored']]} ({names}).")
    at = found["at_test"]
    if at is not None and at["expected_cost"] is not None:
        listed.append(_expected(found, at))
    return listed


def _expected(found: Recommendation, at: AtTest) -> str:
    """Tell the expected cost, and the alerts a day where the number of samples a day is known."""
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
