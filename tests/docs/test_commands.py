"""Every command that the pages show is one, and its settings are."""

import re
import shlex
from pathlib import Path

import pytest
from studies import composed

from monitorbench.cli.main import commands
from monitorbench.cli.stages import STAGES
from monitorbench.config.load import load

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
]
OF_A_PROJECT = ("experiment=first", "experiment=mine", "dataset=own", "monitor=own")
"""Files that `monitorbench init` or the reader writes."""
SCRIPT = re.compile(
    r"(?:\w+=(?:\$\(|\S+ ))?python (slurm/submit\.py )?"
    r"((?:data_build|eval|train)/\w+\.py|(?<=submit\.py )\w+)\b(.*)"
)


def as_command(line: str) -> str:
    """A line that runs a stage's script, or submits it, as the command of that stage."""
    if not (script := SCRIPT.match(line)):
        return line
    is_submitted, name, given = script.groups()
    if name.endswith(".py"):
        (name,) = re.findall(r'STAGES\["(\w+)"\]', (ROOT / name).read_text(encoding="utf-8"))
    settings = re.sub(r" --(?:(?:after|jobs) \S+|[\w-]+)", "", re.split(r" [|>] ", given)[0])
    return f"monitorbench {name}{settings}{' -m' if is_submitted else ''}"


def typed(page: Path) -> list[str]:
    """The lines in code blocks that run the command or a stage's script, without their comments."""
    blocks = re.findall(
        r"^```(?:bash|sh)?\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    parts = [part.strip() for line in lines for part in line.split("  #")[0].split("&&")]
    return [part for part in map(as_command, parts) if part.startswith("monitorbench ")]


CASES = [pytest.param(line, id=f"{page.stem}: {line[13:60]}") for page in PAGES for line in typed(page)]


def test_the_pages_show_commands():
    assert len(CASES) > 200


@pytest.mark.parametrize("line", CASES)
def test_a_command_is_one(line: str):
    _, name, *settings = shlex.split(line)
    assert name in commands()
    if name not in STAGES or any(one in OF_A_PROJECT for one in settings):
        return
    is_sweep = "-m" in settings
    plain = [one for one in settings if one != "-m" and "=" in one]
    assert len(plain) == len(settings) - is_sweep
    if is_sweep:  # the first of each
        plain = [one if "[" in one else one.partition(",")[0] for one in plain]
    load(composed(name, *plain))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_leaves_a_run_to_be_guessed(page: Path):
    assert not re.findall(r"runs/\w+/(?:[A-Z]\b|NAME-HASH)", "\n".join(typed(page)))


def test_the_examples_that_pages_name_are_there():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"examples/[\w.-]+\.jsonl", text))
    assert len(named) >= 4
    assert not [name for name in named if not (ROOT / name).is_file()]
