"""docs/extending.md, taken at its word: its code is applied to a copy of the project, and runs there."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from small_models import tiny_model

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "extending.md"
_LEFT = shutil.ignore_patterns("__pycache__", "local")
PARTS = ("prompt", "engine", "monitor_kind", "source", "objective", "environment", "metric", "section")


class Block(NamedTuple):
    """A fenced block of the page."""

    kind: str
    path: str
    body: str


def blocks() -> list[Block]:
    """All of them; the first line of each names its file."""
    found = re.findall(r"^```(\w+)\n(?:# |\{# )(\S+)(?: #\})?\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(found) == PAGE.read_text().count("\n```") / 2, "a block of the page names no file"
    return [Block(*one) for one in found]


def edited(text: str, diff: str) -> str:
    """The text with a diff's hunks applied; what a hunk takes for there has to stand there exactly once."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        assert text.count(before) == 1, f"this is not in the file, or more than once:\n{before}"
        text = text.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))
    return text


def apply_page(copy: Path) -> None:
    """Write the page's files into a copy of the project, and edit those that it edits."""
    for kind, path, body in blocks():
        file = copy / path
        if kind == "diff":
            file.write_text(edited(file.read_text(), body))
        else:
            assert not file.exists(), f"{path} is there already"
            file.write_text(body)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project's code and settings, with all that the page adds."""
    copy = tmp_path_factory.mktemp("extending") / "copy"
    for folder in ("src", "conf"):
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=_LEFT)
    shutil.copy(ROOT / "pyproject.toml", copy)
    apply_page(copy)
    return copy


@pytest.fixture(scope="module")
def outcomes(copy: Path) -> dict[str, str]:
    """By part of the page, what went wrong in the copy; all of them in one process."""
    scratch = copy.parent
    tests = [ROOT / "tests" / folder for folder in ("docs", ".", "training", "intervention/environments")]
    done = subprocess.run(
        [sys.executable, Path(__file__).parent / "additions.py", copy, tiny_model(scratch / "tiny"), scratch],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [copy / "src", *tests]))},
        cwd=scratch,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_an_addition_copied_from_the_page_works(outcomes: dict[str, str], part: str):
    """A reader who copies it would get a part that does nothing, or a project that no longer starts."""
    assert not outcomes[part], outcomes[part]


@pytest.mark.parametrize("check", [["check"], ["format", "--check"]])
def test_what_is_copied_from_the_page_passes_the_linter(copy: Path, check: list[str]):
    """A reader's first commit would be refused for code that the project itself told them to write."""
    command = [sys.executable, "-m", "ruff", *check, "--no-cache", "src"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_part_of_the_table_has_its_code():
    """Else a row of the table leads to a section without anything to copy, or one that is never run."""
    page = PAGE.read_text()
    linked = re.findall(r"^\| \[[^]]+\]\(#([\w-]+)\)", page, re.M)
    headings = re.findall(r"^## (.+)$", page, re.M)
    assert linked == [heading.lower().replace(" ", "-") for heading in headings]
    assert len(linked) == len(PARTS)
