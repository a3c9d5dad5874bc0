"""How long the samples of each cell of `dataset=paper` are: measured on a machine with a mirror.

`lengths.yaml`, beside this file, is what a forecast takes where the dataset is not built. It is written by

    python -m monitorbench.corpus.paper.lengths DIRECTORY

of a built `dataset=paper_local`, which has what a mirror holds; cells that only a hub fills up are taken to
be as long.
"""

import sys
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

import numpy as np
import yaml

from monitorbench.corpus.columns import read_batches
from monitorbench.corpus.texts import request_text, response_text
from monitorbench.records import Split
from monitorbench.runs.files import write_atomically

_FILE = "lengths.yaml"


def mean_characters() -> dict[str, dict[str, int]]:
    """Characters of request and response together, the mean of each cell, by split."""
    means: dict[str, dict[str, int]] = yaml.safe_load(
        (files("monitorbench.corpus.paper") / _FILE).read_text("utf-8")
    )
    return means


def measure(directory: Path, split: Split) -> dict[str, int]:
    """Measure the mean characters of each cell in a built split; `UserError` where it is missing."""
    lengths_by_cell: defaultdict[str, list[int]] = defaultdict(list)
    for batch in read_batches(directory, split):
        for sample in batch:
            lengths_by_cell[str(sample.cell)].append(len(request_text(sample)) + len(response_text(sample)))
    return {cell: round(float(np.mean(lengths))) for cell, lengths in sorted(lengths_by_cell.items())}


def _main() -> None:
    measured = {split.value: measure(Path(sys.argv[1]), split) for split in Split}
    head = "# Written by `python -m monitorbench.corpus.paper.lengths DIRECTORY`; see there.\n"
    target = Path(str(files("monitorbench.corpus.paper") / _FILE))
    write_atomically(target, head + yaml.safe_dump(measured, sort_keys=True))


if __name__ == "__main__":
    _main()
