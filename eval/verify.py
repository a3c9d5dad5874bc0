"""Compare datasets and runs with the checksums that were written with them.

    python eval/verify.py
    python eval/verify.py run=runs/evaluate/NAME-HASH

Without `run` all of `paths.data` and `paths.runs`. Prints what is not whole, a line each, and the folder
as its last line; exits with 1 where something is not whole. Changes nothing.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "verify", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.runs.verify import verify

    return verify(study)


if __name__ == "__main__":
    main()
