"""Judge a dataset's test split: one verdict per sample in verdicts.jsonl.

    python eval/evaluate.py monitor=smollm2_135m prompt=direct,evidence engine=transformers -m

Prints the evaluation run's directory as its last line.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "evaluate", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.judging.evaluate import evaluate

    return evaluate(study)


if __name__ == "__main__":
    main()
