"""The page on what a monitor sees: its comparison runs as it is typed, on the real small model."""

import json
import re
import shlex
from pathlib import Path

import pytest
from command import ROOT, monitorbench

TEXT = (ROOT / "docs" / "seen.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_comparison_runs_as_the_page_says(tmp_path: Path):
    """A reader's first command would fail, or its table lack what the page explains."""
    blocks = re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    _, name, *settings = shlex.split(blocks[0].replace("\\\n", " "))
    settings = [word.replace("examples/", f"{ROOT}/examples/") for word in settings]
    ran = monitorbench(name, *settings, f"paths.models={ROOT}/models", "tracking=none", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    facts = json.loads((tmp_path / ran.stdout.splitlines()[-1] / "views.json").read_text())
    names = ("direct", "direct+no_reasoning", "direct+reasoning_only")
    assert list(facts["asked"]) == [*names, *(f"{one}+action" for one in names)]
    assert facts["asked"]["direct"]["tokens"] > 0
    of = facts["asked"]["direct+reasoning_only"]
    assert of["n_not_shown"] == of["n_unscored"] > 0
    assert set(of["changes"]) == {"auroc", "miss_rate_at_far_5"}
    assert "AUROC beside direct (Holm, 5 %)" in " ".join(ran.stdout.split())
