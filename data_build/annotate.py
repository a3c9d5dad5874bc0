"""Have samples labelled by annotators: export blind batches, import what they return.

    python data_build/annotate.py dataset=starter annotation.samples_per_cell=20

Prints the batch's directory; with `annotation.action=import run=BATCH annotation.returned=[FILE,FILE]`
the directory of the kept samples.
"""

from pathlib import Path

from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "annotate")
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.annotation.stage import annotate

    return annotate(study, study.annotation)


if __name__ == "__main__":
    main()
