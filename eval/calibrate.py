"""Choose a threshold on the calibration split, with a guarantee on false alarms, from a log alone.

    python eval/evaluate.py evaluate.split=calibration
    python eval/calibrate.py run=runs/evaluate/NAME-HASH calibrate.alpha=0.05
    python eval/score.py run=runs/evaluate/OTHER-HASH operating_point=runs/calibrate/NAME-HASH

Prints the run's directory (operating_point.json) as its last line.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "calibrate", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.scoring.calibrate import calibrate_run

    return calibrate_run(study)


if __name__ == "__main__":
    main()
