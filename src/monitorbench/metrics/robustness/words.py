"""Sentences on the worst that changes do to a monitor."""

from monitorbench.metrics.robustness.compare import Measure
from monitorbench.metrics.robustness.worst import Robustness, Worst
from monitorbench.metrics.written import signed_with_interval

_NAMES: dict[Measure, str] = {
    "miss_rate": "MR",
    "false_alarm_rate": "FAR",
    "auroc": "AUROC",
    "unscored_rate": "unscored",
}
_NAMED = 4
"""Largest number of changes named in a sentence."""


def answer(of: Robustness) -> str:
    """Whether anything is shown to make it worse, in a sentence."""
    exposed = of["exposed"]
    if not exposed:
        return f"none of {of['n_changes']} changes is shown to make it worse"
    names = ", ".join(exposed[:_NAMED]) + (
        f" and {len(exposed) - _NAMED} more" if len(exposed) > _NAMED else ""
    )
    silent = f"; {len(of['silenced'])} by leaving it without an answer" if of["silenced"] else ""
    return f"{len(exposed)} of {of['n_changes']} changes are shown to make it worse: {names}{silent}"


def worst_lines(of: Robustness) -> list[str]:
    """The worst change of each measure, with the interval that holds for all changes at once."""
    return [
        f"{_NAMES[measure]} {signed_with_interval(worst['difference'], worst['difference_ci'])} under "
        f"{worst['change']}{how_sure(measure, worst)}"
        for measure, worst in worst_of(of)
        if worst is not None
    ]


def worst_of(of: Robustness) -> list[tuple[Measure, Worst | None]]:
    """The worst change of each measure, in the order in which they are told."""
    return [
        ("auroc", of["worst_auroc"]),
        ("miss_rate", of["worst_miss_rate"]),
        ("false_alarm_rate", of["worst_false_alarm_rate"]),
        ("unscored_rate", of["worst_unscored_rate"]),
    ]


def how_sure(measure: Measure, one: Worst) -> str:
    """Qualify a worst difference that is not shown, or where no change does harm."""
    if one["is_shown"]:
        return ""
    harms = one["difference"] < 0 if measure == "auroc" else one["difference"] > 0
    return " (not shown)" if harms else " (none does harm)"
