"""The answer in one sentence: which monitor to deploy, where it flags, what that costs and promises.

`decision` makes it of a `metrics.json`; the rule by which a monitor wins is `metrics.decision`. Promises: no
figure without its interval; a monitor is called worse only where an interval says so.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from monitorbench.metrics.decision import CostDifference, DecisionFacts
from monitorbench.metrics.results import Results
from monitorbench.metrics.usage import UsageFacts
from monitorbench.report import reading
from monitorbench.report.tables.inverted import inverted_remark
from monitorbench.report.tables.numbers import DASH, MINUS, amount, counted, interval, rate
from monitorbench.report.tables.points import deployed, differs, flagged_above, notes, percent, promise

_NAMED = 3
"""So many monitors are named in one sentence."""


class PageDecision(NamedTuple):
    """The answer, for a page, a terminal or a program."""

    kind: Literal["deploy", "none", "too_few"]
    monitor: str | None
    """The one to deploy, and its prompt; None unless `kind` is `deploy`."""
    prompt: str | None
    thresholds: dict[str, float]
    """By category, "" for all: misbehavior is a score above it. Empty: the monitor's own answers."""
    n_more: int
    """Of `too_few`: how many more benign calibration questions the promise takes; else 0."""
    sentence: str
    remarks: tuple[str, ...]
    """What the sentence rests on, and whom it did not leave behind."""


def decision(results: Results) -> PageDecision:
    """The answer of a `metrics.json`; the same words on the page and in the terminal."""
    facts = results["decision"]
    if facts["kind"] == "deploy":
        return _deploy(results, facts)
    if facts["kind"] == "none":
        out = _without_threshold(results) if facts["is_calibrated"] else []
        idle = _flag_nothing(results)
        said = " ".join([_NONE_OF_SOME if out else _NONE, *out, *([idle] if idle else [])])
        remarks = (*_nearest(results, facts), *turned(results), *_meaning(results))
        return PageDecision("none", None, None, {}, 0, said, remarks)
    held = facts["promise"]
    assert held is not None
    worth = held.get("worth")
    more = held["needed"] - (held["n"] if worth is None else worth)
    sure = "on average" if held["delta"] is None else f"with {percent(1 - held['delta'])} % confidence"
    said = (
        f"Too few questions: {more:,} more. To promise ≤ {percent(held['alpha'])} % false alarms {sure} "
        f"takes {held['needed']:,} benign calibration questions; the dataset has {held['n']:,}"
        f"{'' if worth is None else f', worth {worth:,} in the shares of cells that are promised'}."
    )
    own = [f"Without a promise: {_deploy(results, facts).sentence}"] if facts["beats"] else [_NONE]
    remarks = (*own, *_remarks(results, facts))
    return PageDecision("too_few", None, None, {}, more, said, remarks)


_NONE = "No monitor beats the baselines: deploy none."
_NONE_OF_SOME = "No monitor with a calibrated threshold beats the baselines: deploy none of them."


def _deploy(results: Results, facts: DecisionFacts) -> PageDecision:
    monitor, prompt = facts["monitor"], facts["prompt"]
    assert monitor is not None
    assert prompt is not None
    point = results.get("operating_points", {}).get(monitor, {}).get(prompt)
    if point is not None and facts["is_calibrated"]:
        where = f", flag above {flagged_above(point['thresholds'])}"
        promised = "; ".join([f"promised {promise(point['thresholds'])}", *notes(results, point)])
        thresholds = {
            t["category"]: t["threshold"] for t in point["thresholds"] if t["threshold"] is not None
        }
    else:
        where, promised, thresholds = " by its own answers", "no threshold was calibrated", {}
    said = f"Deploy {named(results, monitor, prompt)}{where}: {_rates(results, facts)}; {promised}"
    taken = per_sample(results.get("usage", {}).get(monitor, {}).get(prompt))
    sentence = f"{said}; {taken}." if taken else f"{said}."
    return PageDecision("deploy", monitor, prompt, thresholds, 0, sentence, tuple(_remarks(results, facts)))


def named(results: Results, monitor: str, prompt: str) -> str:
    """The monitor, with its prompt where it was run with several."""
    prompts = results["monitors"].get(monitor, {})
    return f"{monitor} ({prompt} prompt)" if len(prompts) > 1 else monitor


def per_sample(taken: UsageFacts | None) -> str:
    """`.3 s and $.0002 a sample`; empty where neither is known."""
    if taken is None:
        return ""
    seconds, cost = taken["seconds_p50"], taken["cost"]
    parts = [] if seconds is None else [f"{short(seconds)} s"]
    parts += [] if cost is None else [f"${short(cost)}"]
    return f"{' and '.join(parts)} a sample" if parts else ""


def short(value: float) -> str:
    """Two digits: `.3`, `.0002`, `12`."""
    text = f"{value:,.0f}" if value >= 10 else f"{float(f'{value:.2g}'):f}".rstrip("0").rstrip(".")
    return text[1:] if text.startswith("0.") else text


def _rates(results: Results, facts: DecisionFacts) -> str:
    """`misses 18 % [12–25], alarms on 7 % [4–13]`, and how many samples have no label."""
    monitor, prompt = facts["monitor"] or "", facts["prompt"] or ""
    point = results.get("operating_points", {}).get(monitor, {}).get(prompt)
    at = point["rates"] if point and facts["is_calibrated"] else None
    of = at or results["monitors"][monitor][prompt]["overall"]
    of_what = f" of {meaning}" if (meaning := reading.meaning(results)) else ""
    said = (
        f"misses {_share(of['miss_rate'], of['miss_rate_ci'])}{of_what}, "
        f"alarms on {_share(of['false_alarm_rate'], of['false_alarm_rate_ci'])}"
    )
    if at is not None and differs(at):
        by = at["false_alarm_rate_by_question"], at["false_alarm_rate_by_question_ci"]
        said += f" of benign samples and {_share(*by)} of benign questions"
    return f"{said}, no label on {of['n_unscored']:,} of {of['n']:,} samples" if of["n_unscored"] else said


def _share(value: float | None, bounds: Sequence[float] | None) -> str:
    if value is None:
        return f"{DASH} %"
    inside = f" [{100 * bounds[0]:.0f}{DASH}{100 * bounds[1]:.0f}]" if bounds else ""
    return f"{100 * value:.0f} %{inside}"


def _remarks(results: Results, facts: DecisionFacts) -> list[str]:
    """Against the nearest baseline, and which other candidates are not shown worse."""
    found = _nearest(results, facts) + turned(results) + _meaning(results)
    if not facts["beats"]:
        return found
    open_ = [one for one in facts["others"] if one["difference_ci"] is None or one["difference_ci"][1] >= 0]
    if open_:
        names = [named(results, one["monitor"], one["prompt"]) for one in open_[:_NAMED]]
        rest = f" and {len(open_) - _NAMED} more" if len(open_) > _NAMED else ""
        verb = "is" if len(open_) == 1 else "are"
        found.append(f"{', '.join(names)}{rest} {verb} not shown worse.")
    if facts["is_calibrated"]:
        found += _deployed(results, facts) + _without_threshold(results)
    return found


def _deployed(results: Results, facts: DecisionFacts) -> list[str]:
    """How many alerts there would be, and how many of them right."""
    by_prompt = results.get("operating_points", {}).get(facts["monitor"] or "", {})
    point = by_prompt.get(facts["prompt"] or "")
    said = deployed(point["rates"], results["stakes"]["base_rate"]) if point else ""
    return [f"{said[0].upper()}{said[1:]}."] if said else []


def _meaning(results: Results) -> list[str]:
    """What is missed and flagged, where that is not called misbehavior."""
    means = reading.meaning(results)
    if not means:
        return []
    return [
        f"Misbehavior is here {means}: a miss is such a sample not flagged, a false alarm any other flagged."
    ]


def _flag_nothing(results: Results) -> str:
    """Whose calibrated threshold nothing is above."""
    names = [
        named(results, monitor, prompt)
        for monitor, by_prompt in results.get("operating_points", {}).items()
        for prompt, point in by_prompt.items()
        if point.get("flags_nothing")
    ]
    if not names:
        return ""
    whose = "threshold of" if len(names) == 1 else "thresholds of"
    verb = "flags" if len(names) == 1 else "flag"
    return f"The calibrated {whose} {', '.join(names)} {verb} nothing: no score is above."


def _without_threshold(results: Results) -> list[str]:
    """Who was no candidate, since no threshold keeps a promise of theirs."""
    points = results.get("operating_points", {})
    names = [
        named(results, monitor, prompt)
        for monitor, by_prompt in results.get("usage", {}).items()
        for prompt in by_prompt
        if prompt not in points.get(monitor, {})
    ]
    if not names:
        return []
    verb = (
        "has no calibrated threshold and was no candidate"
        if len(names) == 1
        else ("have no calibrated threshold and were no candidates")
    )
    return [f"{', '.join(names)} {verb}."]


def turned(results: Results) -> list[str]:
    """Whose scores fall with suspicion, of everything or in a cell."""
    return _upside_down(results) + inverted_remark(results)


def _upside_down(results: Results) -> list[str]:
    """Whose scores fall with suspicion: AUROC below .5 beyond doubt, and answers better than that."""
    found = []
    for monitor, by_prompt in results["monitors"].items():
        for prompt, cells in by_prompt.items():
            one = cells.get("overall")
            if one is None or one["auroc_ci"] is None or one["auroc_ci"][1] >= 0.5:
                continue
            missed, alarms = one["miss_rate"], one["false_alarm_rate"]
            if missed is not None and alarms is not None and missed + alarms < 1:
                found.append(
                    f"The scores of {named(results, monitor, prompt)} look upside down: AUROC "
                    f"{rate(one['auroc'])} {interval(one['auroc_ci'])}, while its answers are right more "
                    "often than wrong; a score must grow with the suspicion of misbehavior."
                )
    return found


def _nearest(results: Results, facts: DecisionFacts) -> list[str]:
    """The candidate of least expected cost against the baseline it is least shown to beat."""
    known = [one for one in facts["against"] if one["difference"] is not None]
    if facts["monitor"] is None or not known:
        return ["No monitor was run on the samples that the baselines judged, misbehavior and benign."]

    def upper(one: CostDifference) -> float:
        return one["difference_ci"][1] if one["difference_ci"] else float("inf")

    nearest = max(known, key=upper)
    name = named(results, facts["monitor"], facts["prompt"] or "")
    sure = f"{percent(nearest['confidence'])} %"
    bounds = nearest["difference_ci"]
    inside = f" [{_signed(bounds[0])}, {_signed(bounds[1])}], {sure} interval," if bounds else ""
    verdict = "beats each baseline" if facts["beats"] else "is not shown to beat each baseline"
    over = counted(nearest["n"], "sample")
    return [
        f"{name} {verdict}: its expected cost minus that of {nearest['monitor']}, which it is least surely "
        f"better than, is {_signed(nearest['difference'])}{inside} a sample, over {over}; an unscored answer "
        "counts as wrong here."
    ]


def _signed(value: float | None) -> str:
    if value is None:
        return DASH
    return f"{MINUS if value < 0 else '+' if value > 0 else ''}{amount(abs(value))}"
