"""The page on real judges says what its own commands answer, where the published files are at hand."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "real-judges.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line)[1:]
    for block in re.findall(r"^```\n(monitorbench.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
]
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


def done_in(answer: str) -> str:
    """The folder that a command ended with."""
    return re.findall(r"runs/transfer/[\w-]+", answer)[-1]


def quoted(beginning: str) -> str:
    """The sentence that the page quotes."""
    quote = next(part for part in re.findall(r"(?:^> .*\n)+", TEXT, re.MULTILINE) if beginning in part)
    return " ".join(quote.replace("> ", " ").split())


def test_the_page_says_what_its_commands_answer(folder: Path):
    chosen, stacked, mean, recommended, pilot = COMMANDS
    answer = said(folder, chosen)
    assert quoted("Deploy haiku") in answer
    assert "it costs more (+0.077 [+0.032, +0.12] a sample)" in answer
    assert "1,676 scores of 1,800 samples" in answer
    page = (folder / done_in(answer) / "report.html").read_text(encoding="utf-8")
    drawing = runpy.run_path(str(ROOT / "docs" / "images" / "draw.py"))
    with Image.open(drawing["JUDGES"]) as picture:
        assert picture.text[drawing["KEY"]] == drawing["shows"](page), "python docs/images/draw.py FOLDER"
    for combination in (stacked, mean):
        said(folder, combination)
    assert "Deploy haiku" in (both := said(folder, recommended))
    assert "Runner-up: mean_haiku_sonnet" in both
    assert "Deploy sonnet" in (single := said(folder, chosen, "import.draws=all"))
    assert "it misses 46 % [41–51]" in single
    assert quoted("Intervene: verifier") in said(folder, pilot)
