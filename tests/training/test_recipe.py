"""The recipe of docs/training.md for one's own file, typed as it stands there."""

import json
import re
import shlex
from pathlib import Path

import pytest
from command import ROOT, monitorbench


def recipe() -> list[list[str]]:
    """The commands below the heading, without their comments."""
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8").partition("## On your own file")[2]
    block = re.search(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block
    return [shlex.split(line, comments=True)[1:] for line in block[1].splitlines()]


@pytest.mark.slow
def test_the_recipe_trains_and_scores_on_ones_own_file(tmp_path: Path, tiny: Path) -> None:
    """Who copies it with another file's name must get an adapter, and its numbers on other questions."""
    small = {
        "train": [f"monitor.path={tiny}", "training.max_steps=4", "training.validate_every=4"],
        "evaluate": [f"monitor.path={tiny}"],
        "score": [],
    }
    rows = [json.loads(line) for line in (ROOT / "examples" / "dataset.jsonl").open(encoding="utf-8")]
    own = [json.dumps({name: value for name, value in row.items() if name != "split"}) for row in rows]
    (tmp_path / "own.jsonl").write_text("\n".join(own), encoding="utf-8")
    lines = {}
    for name, *settings in recipe():
        done = monitorbench(name, *settings, *small[name], folder=tmp_path)
        assert done.returncode == 0, done.stderr
        lines[name] = done
    assert re.search(r"loss \d+\.\d+ -> \d+\.\d+; AUROC on validation", lines["train"].stderr)
    run = Path(lines["evaluate"].stdout.strip().splitlines()[-1])
    metrics = json.loads((tmp_path / run / "metrics.json").read_text())
    judge = json.loads((tmp_path / run / "manifest.json").read_text())["results"]["judge"]
    assert judge["adapter"]
    cells = metrics["monitors"][judge["name"]][judge["prompt"]]
    assert min(cell["n"] for cell in cells.values()) > 0
