"""Ask a subject model (`monitor=`) real questions, without and with a misleading cue; keep its answers.

    python data_build/elicit.py monitor=smollm2_135m elicit.sources=[bbq]

Interrupted, it resumes with the questions that have no answer yet.
Prints the answers' directory, for `dataset.elicited=DIR`.
"""

from pathlib import Path

from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "elicit")
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.corpus.elicit import elicit

    return elicit(study)


if __name__ == "__main__":
    main()
