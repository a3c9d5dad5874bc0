"""What `--help` of a stage prints. Hydra's own reads the tree once for every group, which takes seconds."""

import textwrap

from monitorbench.cli.stage import Stage
from monitorbench.config.project import groups, options, trees_of


def help_text(stage: Stage) -> str:
    """The stage's text, and below it the groups of settings with their options."""
    trees = trees_of(stage.conf)
    listed = [
        textwrap.fill(
            ", ".join(options(group, trees)), 80, initial_indent=f"  {group}=", subsequent_indent="    "
        )
        for group in groups(trees)
    ]
    return "\n".join(
        [
            stage.text.strip(),
            "",
            "Configuration groups and their options:",
            *listed,
            "",
            "Any value is set by key=value; `--cfg job` shows them all, `-m` sweeps (key=a,b).",
        ]
    )
