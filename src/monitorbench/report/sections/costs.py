"""The section of what a verdict costs beside how good it is."""

from markupsafe import Markup

from monitorbench.metrics import reading
from monitorbench.metrics.cost_fronts import COSTS, QUALITIES
from monitorbench.report.figures import costs as figures_costs
from monitorbench.report.sections.section import NOTHING, Material, fill
from monitorbench.report.tables import costs

_QUALITY_WORDS = {"auroc": "AUROC", "miss_rate_at_far_5": "miss rate at FAR 5 %"}


def against_cost(material: Material) -> Markup:
    """AUROC and MR at FAR 5 % against tokens and seconds a verdict, with the fronts."""
    results, shorts = material.results, material.short_names
    if len(costs.measured(results)) < 2:  # one monitor under one prompt has no rival
        return NOTHING
    fronts = {
        f"{_QUALITY_WORDS[quality]} against {cost}": [
            shorts[name] if reading.is_reference(results, name) else f"{shorts[name]} · {prompt}"
            for name, prompt in costs.on_the_front(results, cost, quality)
        ]
        for cost in COSTS
        for quality in QUALITIES
    }
    rows = costs.costed(results)
    values = {
        # Safe to put in as they are: drawn here, every name in them an outline or escaped.
        "figures": [
            Markup(figures_costs.against_cost(results, cost))
            for cost in COSTS
            if any(row.costs[cost] for row in rows)
        ],
        "fronts": [f"Front of {of}, the cheapest first: {', '.join(on)}." for of, on in fronts.items() if on],
        "cascades": [
            f"{shorts[row.monitor]} · {row.prompt} {costs.sent_on_in_words(row.sent_on)}."
            for row in rows
            if row.sent_on
        ],
    }
    return fill("costs", values)
