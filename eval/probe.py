"""Lay evaluation runs side by side: the transfer matrix of adapters against their base.

    python eval/probe.py probe.runs=[runs/evaluate/A,runs/evaluate/B]
    python eval/probe.py experiment=probe/cpu     # a study: its runs are found, or made, by what decides them

Prints the probe's run directory as its last line.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "probe", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.probe.stage import probe

    return probe(study)


if __name__ == "__main__":
    main()
