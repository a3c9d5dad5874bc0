"""A script of the tests' own, entered as all are, on the project's real configuration."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import script

ECHO = '''
"""Write the study down; fail where `seed` is 1 and nobody mended it; wait where it is 2."""
import hashlib, os, signal, time
from pathlib import Path
from monitorbench.cli.stage import Stage
from monitorbench.config.base import UserError
from monitorbench.config.study import Study

def echo(study, compose) -> Path:
    if study.seed == 1 and not Path("mended").exists():
        raise UserError("seed=1: not mended")
    if study.seed == 2:
        Path("waiting").touch()
        while not Path("go").exists():
            time.sleep(0.02)
    text = study.model_dump_json()
    folder = study.paths.runs / "echo" / hashlib.sha256(text.encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.json").write_text(text)
    print("and a line before")
    return folder

main = Stage("train", echo, "Echo.", conf=Path(__file__).resolve().parent.parent / "conf")

if __name__ == "__main__":
    main()
'''


@pytest.fixture
def desk(tmp_path: Path, root: Path) -> Path:
    """A folder with `train/echo.py` and the project's configuration."""
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "echo.py").write_text(ECHO)
    (tmp_path / "conf").symlink_to(root / "conf")
    return tmp_path


@pytest.fixture
def python(desk: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script at the desk, in this process; `slurm/...` are the project's own."""

    def run(name: str, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{path}:{os.environ['PATH']}"}
        return script(name, *arguments, folder=desk, environment=environment)

    return run
