"""Merge a trained adapter into its base: a full model folder (safetensors), the value for monitor.path.

    python train/merge.py run=runs/train/NAME-HASH

Prints that folder as its last line.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "merge", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.training.publish import merge_run

    return merge_run(study)


if __name__ == "__main__":
    main()
