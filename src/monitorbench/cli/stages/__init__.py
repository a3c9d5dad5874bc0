"""Every stage as a command: `monitorbench NAME key=value …`, and the script of that name."""

from monitorbench.cli.stages.answering import ANSWERING
from monitorbench.cli.stages.making import MAKING

STAGES = {stage.name: stage for stage in (*MAKING, *ANSWERING)}
"""The stages by their names."""
