"""Score one evaluation run from its log alone: the table, and metrics.json and table.csv beside it.

    python eval/score.py run=runs/evaluate/NAME-HASH

Prints the same directory as its last line.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "score", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.scoring.score import score_run

    return score_run(study)


if __name__ == "__main__":
    main()
