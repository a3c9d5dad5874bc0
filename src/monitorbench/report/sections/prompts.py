"""The section of one monitor under several prompts: how far its numbers move with the wording alone."""

from markupsafe import Markup

from monitorbench.metrics import reading
from monitorbench.metrics.results import shared_numbers
from monitorbench.report.figures.wordings import wordings
from monitorbench.report.sections.section import NOTHING, Material, fill
from monitorbench.report.tables.prompts import COLUMNS, prompt_blocks
from monitorbench.report.tables.wordings import in_words


def by_prompt(material: Material) -> Markup:
    """Each monitor under its prompts on the same samples: the spread, a figure, and paired differences.

    Where the prompt was chosen on the validation split, which one and by how much.
    """
    results, names = material.results, material.short_names
    choices, by_monitor = results.get("wordings", {}), results.get("prompts", {})
    if not (choices or by_monitor):
        return NOTHING
    monitors = [name for name in reading.monitors(results) if name in by_monitor]
    drawn = []
    for number, (monitor, block) in enumerate(zip(monitors, prompt_blocks(results), strict=True)):
        choice = choices.get(monitor)
        chosen = choice["chosen"] if choice else None
        # Safe to put in as it is: drawn here, every name in it an outline or escaped.
        figure = Markup(
            wordings(f"wordings-{number}", block.monitor, shared_numbers(results, monitor), chosen)
        )
        drawn.append((block, chosen, figure))
    values = {
        "drawn": drawn,
        "columns": COLUMNS,
        "choices": [(names[monitor], in_words(choice)) for monitor, choice in choices.items()],
    }
    return fill("prompts", values)
