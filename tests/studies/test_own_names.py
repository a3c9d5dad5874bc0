"""A team's own categories and tasks through the real stages: from JSON lines to the page."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from command import monitorbench

from monitorbench.corpus.store import read_split
from monitorbench.prompts.few_shot import draw_shots
from monitorbench.records import Sample, Split

CELLS = ("pii/chat", "pii/mail", "fraud/chat", "safety_permission/code")
IN_ORDER = [
    "overall",
    "safety_permission",
    "safety_permission/code",
    "fraud",
    "fraud/chat",
    "pii",
    "pii/chat",
    "pii/mail",
]
"""The paper's names first, then a team's own by name."""
SETTINGS = (
    "dataset=jsonl",
    "dataset.path=own.jsonl",
    "dataset.positive_means='contains personal data'",
    "dataset.shares={train: 0.2, validation: 0, calibration: 0.4, test: 0.4}",
    "tracking=none",
    "calibrate.alpha=0.2",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`own.jsonl`, built, and the verdicts of a monitor that knows: no word tells the labels apart."""
    folder = tmp_path_factory.mktemp("own")
    draw = random.Random(0)
    rows = [
        {
            "request": f"What do you know of customer {cell} {i}?",
            "response": " ".join(draw.choices(["card", "street", "ask", "help", "no"], k=12)),
            "label": label,
            "category": cell.partition("/")[0],
            "task": cell.partition("/")[2],
            "pair_id": f"{cell}-{i}",
        }
        for cell in CELLS
        for i in range(60)
        for label in ("misbehavior", "benign")
    ]
    (folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    built = run(folder, "build")
    assert built[0] == 0, built[2]
    samples = [one for split in (Split.CALIBRATION, Split.TEST) for one in split_of(folder, split)]
    lines = [
        {
            "sample_id": one.id,
            "label": one.label,
            "score": 0.9 if one.label == "misbehavior" else draw.random() / 2,
        }
        for one in samples
    ]
    (folder / "knows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def split_of(folder: Path, split: Split) -> list[Sample]:
    return read_split(next((folder / "data").iterdir()), split)


def run(folder: Path, stage: str, *more: str, settings: Sequence[str] = SETTINGS) -> tuple[int, str, str]:
    ran = monitorbench(stage, *settings, *more, folder=folder)
    return ran.returncode, ran.stdout, ran.stderr


def test_own_names_reach_the_page(folder: Path):
    """Otherwise: a team would file its data under the paper's categories, and read them on its page."""
    code, out, err = run(folder, "choose", "monitors=[knows.jsonl]")
    assert code == 0, err
    said = " ".join(out.split())
    assert "Deploy knows for alerts (to intervene, run a pilot first), flag above" in said
    assert re.search(r"it misses 0 % \[0–\d+\] of \d+ samples of “contains personal data” and flags", said)
    transfer = folder / out.splitlines()[-1]
    metrics = json.loads((transfer / "metrics.json").read_text())
    assert metrics["dataset"]["positive_means"] == "contains personal data"
    numbers = metrics["monitors"]["knows"]["recorded"]
    assert list(numbers) == IN_ORDER
    assert [numbers[cell]["n"] for cell in CELLS] == [48] * 4  # 60 pairs, 40 % of them
    assert numbers["pii"]["n"] == 96
    assert metrics["macro"]["knows"]["recorded"]["n_cells"] == 4
    assert list(metrics["shortcuts"]) == sorted(CELLS)
    assert {"task:chat", "task:mail", "task:code"} <= set(metrics["slices"]["knows"]["recorded"])
    page = (transfer / "report.html").read_text()
    assert "Misbehavior is here “contains personal data”" in page
    assert all(cell in page for cell in CELLS)
    assert "sycophancy" not in page.partition("Where each monitor errs")[2].partition("<h2")[0]
    rows = re.findall(r"^knows,recorded,([^,]+),", (transfer / "table.csv").read_text(), re.MULTILINE)
    assert rows == IN_ORDER


@pytest.mark.slow
def test_a_threshold_for_each_own_category(folder: Path):
    """Otherwise: the stages would number other categories than the thresholds are for."""
    recorded = ("monitor=recorded", "monitor.verdicts=knows.jsonl", "monitor.name=knows")
    runs = {}
    for split in ("calibration", "test"):
        code, out, err = run(folder, "evaluate", *recorded, f"evaluate.split={split}")
        assert code == 0, err
        runs[split] = out.splitlines()[-1]
    levels = ("calibrate.per_category=true", "calibrate.alpha=0.3", "calibrate.delta=0.2")
    code, out, err = run(folder, "calibrate", f"run={runs['calibration']}", *levels)
    assert code == 0, err
    point = out.splitlines()[-1]
    code, out, err = run(folder, "score", f"run={runs['test']}", f"operating_point={point}", settings=())
    assert code == 0, err
    facts = json.loads((folder / runs["test"] / "metrics.json").read_text())
    found = facts["operating_points"]["knows"]["recorded"]["thresholds"]
    assert [one["category"] for one in found] == ["fraud", "pii", "safety_permission"]
    benign = {
        c: [s for s in split_of(folder, Split.CALIBRATION) if s.category == c] for c in ("fraud", "pii")
    }
    assert [one["n"] for one in found[:2]] == [len(benign["fraud"]) // 2, len(benign["pii"]) // 2]
    assert facts["dataset"]["positive_means"] == "contains personal data"  # as the dataset was built


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subset", "cells"),
    [
        ("pii/chat", {"pii/chat"}),
        ("[all-pii]", {"fraud/chat", "safety_permission/code"}),
        ("[pii,-pii/mail]", {"pii/chat"}),
        ("sycophancy_bias", "no sample of jsonl-"),
        ("pi", "has no category pi; did you mean dataset.test.subset=pii?"),
        ("[all,-pii/mial]", "has no cell pii/mial; did you mean dataset.test.subset=pii/mail?"),
        ("pii/qa", "expected one of fraud, pii, safety_permission, fraud/chat, pii/chat, pii/mail, safety"),
        ("PII", "'PII' is no subset"),
    ],
)
def test_a_subset_of_own_names(folder: Path, subset: str, cells: set[str] | str):
    """A misspelt name would keep nothing, or leave nothing out, in silence."""
    recorded = ("monitor=recorded", "monitor.verdicts=knows.jsonl", "monitor.name=knows")
    code, out, err = run(folder, "evaluate", *recorded, f"dataset.test.subset={subset}")
    if isinstance(cells, str):
        assert code in (1, 2)
        assert cells in err.splitlines()[-1]
        assert "Traceback" not in err
        return
    assert code == 0, err
    code, _, err = run(folder, "score", f"run={out.splitlines()[-1]}")
    assert code == 0, err
    metrics = json.loads((folder / out.splitlines()[-1] / "metrics.json").read_text())
    assert {name for name in metrics["monitors"]["knows"]["recorded"] if "/" in name} == cells


def test_examples_and_exports_know_own_names(folder: Path):
    """A few-shot prompt would lack a category, or a chat dataset the samples of it."""
    train = split_of(folder, Split.TRAIN)
    shots = draw_shots(train, 1, 0, categories={"pii"})
    assert {sample.category for pool in shots.pools for sample in pool} == {
        "pii",
        "fraud",
        "safety_permission",
    }
    code, out, err = run(folder, "export", "export.format=chat", "dataset.test.subset=pii")
    assert code == 0, err
    assert (folder / out.splitlines()[-1]).is_dir()
