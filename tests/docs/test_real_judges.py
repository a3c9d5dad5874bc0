"""The page on real judges says what its own commands answer, where the published files are at hand."""

import csv
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "real-judges.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line)[1:]
    for block in re.findall(r"^```\n(monitorbench.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
]
JUDGES = ROOT / "examples" / "judges.csv"
FILES = {
    "base_claude_both_k8.jsonl": "rewardbench2_judges",
    "base_both_k8.jsonl": "rewardbench2_judges",
    "base_nano_k8.jsonl": "rewardbench2_judges",
    "example_model_solutions.jsonl": "gsm8k",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page fetches."""
    mirror = os.environ.get("MONITORBENCH_SOURCES")
    if not mirror:
        pytest.skip("MONITORBENCH_SOURCES is not set")
    there = tmp_path_factory.mktemp("judges")
    for name, source in FILES.items():
        packed = Path(mirror) / source / f"{name}.gz"
        if not packed.is_file():
            pytest.skip(f"no {packed}")
        (there / f"{name}.gz").symlink_to(packed)
    return there


def said(folder: Path, command: list[str], *more: str) -> str:
    """What a command of the page prints, in one line."""
    packed = [re.sub(r"\.jsonl\b", ".jsonl.gz", setting) for setting in command]
    asked = [sys.executable, "-m", "monitorbench.cli", *packed, *more]
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return " ".join((done.stdout + re.sub(r"^\w+: ", "", done.stderr, flags=re.MULTILINE)).split())


def quoted(beginning: str) -> str:
    """The sentence that the page quotes."""
    quote = next(part for part in re.findall(r"(?:^> .*\n)+", TEXT, re.MULTILINE) if beginning in part)
    return " ".join(quote.replace("> ", " ").split())


def test_the_page_says_what_its_commands_answer(tmp_path: Path):
    chosen, stacked, mean, recommended, *_ = COMMANDS
    answer = said(tmp_path, chosen, f"from={JUDGES}")
    assert quoted("Deploy haiku") in answer
    assert "it costs more (+0.077 [+0.032, +0.12] a sample)" in answer
    assert "1,676 scores of 1,800 samples" in answer
    for combination in (stacked, mean):
        said(tmp_path, combination)
    assert "Deploy haiku" in (both := said(tmp_path, recommended))
    assert "Runner-up: mean_haiku_sonnet" in both


def test_the_published_files_say_the_same(folder: Path):
    *_, published, pilot = COMMANDS
    assert quoted("Deploy haiku") in said(folder, published)
    assert "Deploy sonnet" in (single := said(folder, published, "import.draws=all"))
    assert "it misses 46 % [41–51]" in single
    assert quoted("Intervene: verifier") in said(folder, pilot)


def test_the_example_has_the_means_of_the_published_ratings(folder: Path):
    """Otherwise: the first page that a newcomer sees is of numbers that nobody published."""
    columns = [setting for setting in COMMANDS[-2] if setting.startswith("import.monitors=")]
    named = dict(one.split(":") for one in columns[0].partition("{")[2].rstrip("}").split(","))
    means = {}
    for judge, column in named.items():
        file, field = column.split("/")
        with gzip.open(folder / f"{file}.jsonl.gz", "rt", encoding="utf-8") as stream:
            rows = [row for row in map(json.loads, stream) if row["subset"] == "Safety"]
        for row in rows:
            for place, drawn in enumerate(row[field]):
                given = [rating for rating in drawn if rating is not None]
                means[f"{row['id']}/{place}", judge] = np.mean(given) if given else None
    with JUDGES.open(encoding="utf-8", newline="") as stream:
        examples = list(csv.DictReader(stream))
    assert {one["sample_id"] for one in examples} == {sample for sample, _ in means}
    for one in examples:
        assert (one["label"] == "benign") == one["sample_id"].endswith("/0")
        for judge in named:
            mean, shown = means.get((one["sample_id"], judge)), one[f"rating.{judge}"]
            assert shown == "" if mean is None else float(shown) == pytest.approx(mean, abs=1e-9)
