"""The section of what changes that keep the label do to a monitor: its robustness, and a row a change."""

from typing import NamedTuple

from markupsafe import Markup

from monitorbench.metrics.robustness.compare import Measure
from monitorbench.metrics.robustness.facts import StressFacts
from monitorbench.metrics.robustness.words import answer, how_sure, worst_of
from monitorbench.metrics.robustness.worst import Worst
from monitorbench.metrics.written import DASH, signed_with_interval
from monitorbench.report.sections.section import NOTHING, Material, fill
from monitorbench.report.stress.table import StressRow, notes, rows

COLUMNS = ("n", "ΔMR", "ΔFAR", "ΔAUROC", "Δunscored", "lost")
WORST = ("worst ΔAUROC", "worst ΔMR", "worst ΔFAR", "worst Δunscored")


class _Monitor(NamedTuple):
    """One monitor's robustness."""

    name: str
    prompt: str
    answer: str
    worst: list[str]
    rows: list[StressRow]
    notes: list[str]


def under_stress(material: Material) -> Markup:
    """All monitors' worst numbers side by side, and below each what every change does."""
    monitors = [_monitor(material, facts) for facts in material.stress]
    values = {"monitors": monitors, "columns": COLUMNS, "worst": WORST}
    return fill("under_stress", values) if monitors else NOTHING


def _monitor(material: Material, facts: StressFacts) -> _Monitor:
    point = f", at {facts['operating_point']}" if facts["operating_point"] else ""
    return _Monitor(
        material.short_names.get(facts["monitor"], facts["monitor"]),
        f"{facts['prompt']}{point}",
        answer(facts["robustness"]),
        [_worst(measure, worst) for measure, worst in worst_of(facts["robustness"])],
        rows(facts),
        notes(facts),
    )


def _worst(measure: Measure, one: Worst | None) -> str:
    if one is None:
        return DASH
    value = signed_with_interval(one["difference"], one["difference_ci"])
    return f"{value} under {one['change']}{how_sure(measure, one)}"
