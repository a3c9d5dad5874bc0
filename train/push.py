"""Publish a trained adapter, or with push.merged=true the merged model, with a generated card.

    python train/push.py run=runs/train/NAME-HASH push.repo=OWNER/NAME

That is a dry run; push.dry_run=false uploads. Prints the run's directory, where the card
is `README.md`, as its last line.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "push", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.training.publish import push_run

    return push_run(study)


if __name__ == "__main__":
    main()
