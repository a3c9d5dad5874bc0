"""The baselines' numbers, worked out once for a dataset and kept under `runs/baselines/`.

They depend on the dataset, the draws and the stakes, never on the judge that is set beside them, and cost
more than it does: the texts have to be read.
"""

import importlib.metadata
import logging
from pathlib import Path
from typing import cast

from monitorbench.config.study import Study
from monitorbench.corpus.code import sha256_of_code
from monitorbench.corpus.columns import read_batches, read_columns
from monitorbench.corpus.store import read_split
from monitorbench.records import Split
from monitorbench.runs.directory import RunDirectory, read_finished
from monitorbench.runs.files import read_json, write_json
from monitorbench.scoring.baselines import judge_with_baselines
from monitorbench.scoring.numbers import Numbers, drawn_by, numbers, stakes_of

_FILE = "metrics.json"
_CODE = (
    "metrics",
    "scoring/baselines.py",
    "scoring/numbers.py",
    "corpus/columns.py",
    "corpus/surface.py",
    "corpus/texts.py",
    "records.py",
)
_log = logging.getLogger(__name__)


def baseline_numbers(study: Study, data: Path) -> dict[str, Numbers]:
    """Each baseline's numbers over the whole test split of `data`, by name; reused where they are there."""
    stakes, drawn = stakes_of(study), drawn_by(study)
    # A dataset's directory can gain a train split later, and with it the baselines that are fitted on one.
    splits = read_finished(data)["results"]["splits"]
    identity = {
        "data": data.name,
        "split": Split.TEST.value,
        "splits": {name: splits[name] for name in (Split.TRAIN, Split.TEST) if name in splits},
        "stakes": stakes,
        **drawn,
        "code": sha256_of_code(_CODE),
        "versions": {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }
    run = RunDirectory(study.paths.runs / "baselines", data.name.rpartition("-")[0], identity)
    if run.done:
        return cast(dict[str, Numbers], read_json(run.path / _FILE))
    _log.info("score: baselines of %s, kept in %s", data.name, run.path)
    with run.recording(study) as results:
        train = read_split(data, Split.TRAIN) if Split.TRAIN in splits else []
        test = read_columns(data, Split.TEST)
        answered = judge_with_baselines(train, test, read_batches(data, Split.TEST), seed=study.seed)
        found = {name: numbers(held, stakes, drawn) for name, held in answered.items()}
        write_json(run.path / _FILE, found)
        results["baselines"] = list(found)
    return found
