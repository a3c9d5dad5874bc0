"""Make one monitor of several judges' finished runs, from their logs alone: an ensemble or a cascade.

    python eval/combine.py combine.rule=stacked combine.calibration=[A,B] combine.test=[C,D]
    python eval/calibrate.py run=runs/evaluate/STACKED-ON-CALIBRATION
    python eval/score.py run=runs/evaluate/STACKED-ON-TEST operating_point=runs/calibrate/NAME-HASH

Writes two evaluation runs, one a split, and prints the test run's directory as its last line.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "combine", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.scoring.combine import combine_runs

    return combine_runs(study)


if __name__ == "__main__":
    main()
