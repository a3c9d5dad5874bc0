"""Write report.html for a probe, a scored evaluation run or a pilot, and print its tables.

    python eval/report.py run=runs/probe/NAME-HASH
    python eval/report.py run=runs/pilot/NAME-HASH

Prints the run's directory as its last line.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "report", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.intervention.report.write import is_of_a_pilot, report_pilot
    from monitorbench.report.write import report

    return report_pilot(study) if is_of_a_pilot(study.required_run()) else report(study)


if __name__ == "__main__":
    main()
