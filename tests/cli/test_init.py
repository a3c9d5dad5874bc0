"""A project of one's own: its settings compose, come first, and nothing of a person's is overwritten."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from command import ROOT, monitorbench

from monitorbench.cli.init import FILES, main
from monitorbench.config.base import UserError


def test_a_project_composes_as_it_is_written(tmp_path: Path):
    """Otherwise: the first thing that a new user gets does not work."""
    assert monitorbench("init", "own", folder=tmp_path).returncode == 0
    project = tmp_path / "own"
    (project / "samples.jsonl").write_text((ROOT / "examples" / "dataset.jsonl").read_text())
    planned = monitorbench("choose", "experiment=first", "plan=true", folder=project)
    assert planned.returncode == 0, planned.stderr
    assert re.search(r"^evaluate direct +2 +0 +214 ", planned.stdout, re.M), "one monitor over two splits"
    twice = monitorbench("choose", "experiment=first", "monitors=[own,smollm2_135m]", folder=project)
    assert twice.returncode == 2
    assert "own and smollm2_135m are one judge under two names" in " ".join(twice.stderr.split())
    assert {path.name for path in project.iterdir()} == {
        "monitorbench.yaml",
        "conf",
        "samples.jsonl",
        ".gitignore",
    }


def test_the_monitor_of_a_project_is_the_one_that_is_filled_in(tmp_path: Path):
    """Otherwise: SmolLM2 judges under the name of one's own model."""
    main([str(tmp_path)])
    file = tmp_path / "conf/monitor/own.yaml"
    template = file.read_text()
    (tmp_path / "samples.jsonl").write_text((ROOT / "examples" / "dataset.jsonl").read_text())
    command = ("evaluate", "monitor=own", "dataset=own", "plan=true")
    file.write_text(template.replace("# hub_id: OWNER/NAME", "hub_id: someone/model"))
    refused = monitorbench(*command, folder=tmp_path)
    assert refused.returncode == 2
    said = " ".join(refused.stderr.split())
    assert "monitor.hub_id=someone/model: is not read, monitor.package has HuggingFaceTB/SmolLM2" in said
    filled, uncommented = template.split("uncomment all of it:\n")
    lines = uncommented.replace("# ", "").replace("OWNER/NAME", "someone/model")
    file.write_text(f"{filled}uncomment all of it:\n{lines}")
    planned = monitorbench(*command, folder=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert "by characters" in " ".join(planned.stdout.split()), "its tokenizer is not SmolLM2's"


def test_its_settings_come_before_those_of_the_package(tmp_path: Path):
    """Otherwise: an edited copy of a monitor would silently be the package's."""
    monitorbench("init", ".", folder=tmp_path)
    mine = (ROOT / "conf/monitor/smollm2_135m.yaml").read_text().replace("smollm2_135m", "mine")
    (tmp_path / "conf/monitor/smollm2_135m.yaml").write_text(mine)
    shown = monitorbench("evaluate", "monitor=smollm2_135m", "--cfg", "job", folder=tmp_path).stdout
    assert "name: mine" in shown
    # The package's own in a folder that is no project, though there is a conf/ in it.
    (tmp_path / "monitorbench.yaml").unlink()
    shown = monitorbench("evaluate", "monitor=smollm2_135m", "--cfg", "job", folder=tmp_path).stdout
    assert "name: smollm2_135m" in shown


def test_help_and_completion_know_the_projects_options(tmp_path: Path):
    """Otherwise: what one has added can be found nowhere."""
    monitorbench("init", ".", folder=tmp_path)
    shown = monitorbench("evaluate", "--help", folder=tmp_path).stdout
    assert "experiment=demo  " in shown
    assert "experiment=first  " in shown
    asked = {"MONITORBENCH_COMPLETE": "monitorbench evaluate dataset="}
    words = monitorbench("completion", "values", folder=tmp_path, environment=asked).stdout.split()
    assert {"own", "starter"} <= set(words)


@pytest.mark.parametrize("name", FILES)
def test_nothing_that_is_there_is_changed(tmp_path: Path, name: str):
    """Otherwise: a second `init` takes somebody's settings away."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match="is there already"):
        main([str(tmp_path)])
    assert json.dumps((tmp_path / name).read_text()) == '"mine"'
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 1


def test_git_sees_no_results_and_no_keys(tmp_path: Path):
    """Otherwise: `git add .` in a project publishes its keys, and takes gigabytes of runs along."""
    main([str(tmp_path)])
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in ("runs/a", "data/b", "models/c", "conf/local/d", ".env", "sub/.env"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    seen = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    assert set(seen) == {*FILES, ".gitignore"}


def test_a_gitignore_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Otherwise: a project in a repository can't be begun, or its rules are lost."""
    (tmp_path / ".gitignore").write_text("runs\n.env\n")
    main([str(tmp_path)])
    assert (tmp_path / ".gitignore").read_text() == "runs\n.env\n"
    assert "add these lines to it: /data/ /models/" in capsys.readouterr().out
