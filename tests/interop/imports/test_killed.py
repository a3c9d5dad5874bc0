"""An import that is killed leaves nothing that passes for whole, and the same command does it all."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from score_files import Import, runs_of, transcripts, write_csv

from monitorbench.config.study import Study
from monitorbench.interop.imports.stage import import_scores
from monitorbench.runs.directory import is_finished

COLUMNS = ("import.columns.sample=transcript", "import.columns.label=attack", "import.scale=[0,10]")
_CHANGES = {"os.rename", "os.mkdir", "os.remove", "open"}


@pytest.mark.parametrize("at", [2, 9, 17, 25, 33])
def test_killed_at_any_change_of_the_disk(
    tmp_path: Path, into: Callable[..., Study], importing: Import, at: int
):
    """A run with half of its verdicts would be scored as if the rest had never been there."""
    file = write_csv(tmp_path / "s.csv", transcripts(40))
    study = into("import", f"from={file}", *COLUMNS, "import.calibration_share=0.5")
    if not (child := os.fork()):
        left = [at]

        def die(event: str, details: tuple[object, ...]) -> None:
            if event in _CHANGES and str(tmp_path) in str(details[0]) and "s.csv" not in str(details[0]):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(die)
        import_scores(study)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    for kind in ("data", "runs/evaluate"):
        folder = tmp_path / kind
        there = [one for one in folder.iterdir() if not one.name.startswith(".")] if folder.is_dir() else []
        assert all(is_finished(one) for one in there)
    importing(file, *COLUMNS, "import.calibration_share=0.5")
    assert len(runs_of(tmp_path)) == 2
    assert not list(tmp_path.rglob(".*.part-*"))
