"""The page on what a monitor sees: its comparison runs as it is typed, on the real small model."""

import json
import re
import shlex
from pathlib import Path

import pytest
from command import ROOT, monitorbench

from monitorbench.runs.keyed_log import read_verdicts

TEXT = (ROOT / "docs" / "seen.md").read_text(encoding="utf-8")


BLOCKS = re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
SMALL = ("tracking=none", f"paths.models={ROOT}/models", "dataset.test.pairs_per_cell=1")


def typed(folder: Path, command: str, *settings: str) -> list[str]:
    """The lines that a command of the page prints, over few samples."""
    _, name, *words = shlex.split(command.replace("\\\n", " "))
    words = [word.replace("examples/", f"{ROOT}/examples/") for word in words]
    ran = monitorbench(name, *words, *settings, folder=folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.slow
def test_long_texts_are_read_and_tried_as_the_page_says(tmp_path: Path):
    """A reader with half a million tokens would be left with a command that fails."""
    (ledger,) = (block for block in BLOCKS if "unit=ledger" in block)
    run = tmp_path / typed(tmp_path, ledger, *SMALL)[-1]
    verdicts = read_verdicts(run / "verdicts.jsonl")
    assert any(verdict.score is not None for verdict in verdicts)
    assert all(verdict.answer or verdict.unscored for verdict in verdicts), "no list: unscored"
    evaluated, stressed = next(block for block in BLOCKS if "turns" in block).strip().splitlines()
    few = (*SMALL[:2], "dataset.test.pairs_per_cell=2", "dataset.test.subset=safety_permission/qa")
    typed(tmp_path, evaluated, *few)
    short = ("stress.changes=[turns.2k]", "stress.pairs_per_cell=1")
    run = tmp_path / typed(tmp_path, stressed, *SMALL[:2], *short)[-1]
    changes = json.loads((run / "stress.json").read_text())["changes"]
    assert list(changes) == [f"turns.2k.{at}" for at in ("first", "middle", "last")]
    assert all(change["n"] for change in changes.values())


@pytest.mark.slow
def test_the_comparison_runs_as_the_page_says(tmp_path: Path):
    """A reader's first command would fail, or its table lack what the page explains."""
    printed = typed(tmp_path, BLOCKS[0], *SMALL[:2])
    facts = json.loads((tmp_path / printed[-1] / "views.json").read_text())
    names = ("direct", "direct+no_reasoning", "direct+reasoning_only")
    assert list(facts["asked"]) == [*names, *(f"{one}+action" for one in names)]
    assert facts["asked"]["direct"]["tokens"] > 0
    of = facts["asked"]["direct+reasoning_only"]
    assert of["n_not_shown"] == of["n_unscored"] > 0
    assert set(of["changes"]) == {"auroc", "miss_rate_at_far_5"}
    assert "AUROC beside direct (Holm, 5 %)" in " ".join(" ".join(printed).split())
