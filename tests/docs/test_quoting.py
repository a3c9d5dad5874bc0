"""Commands in our texts are typed into a shell: what zsh or bash would expand stands in quotes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import ROOT

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*.md")),
]
SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "conf").rglob("*.yaml"))]
COMMAND = re.compile(r"(?:^|[\s`(])((?:[A-Z_]+=\S+ )*(?:monitorbench|python \w+/\w+\.py|submit\.py) [^`]*)")


def unquoted(command: str) -> list[str]:
    """List the settings of a command line that a shell would expand: zsh `[…]`, bash `{a,b}`."""
    outside = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    words = re.split(r"\s+", outside.partition(" #")[0])
    return [word for word in words if re.match(r"[+~]?[\w.@/-]+=.*(?:\[|\{[^}]*,|\*|\?)", word)]


def commands(text: str) -> Iterator[str]:
    """Yield the command lines in fenced and indented blocks, with lines joined that end in a backslash."""
    joined = re.sub(r"\\\n\s*", " ", text)
    for line in joined.splitlines():
        if match := COMMAND.search(line):
            yield match.group(1)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_quote_what_a_shell_expands(page: Path):
    """Otherwise: the first command of a page fails in zsh, or bash runs it with other settings."""
    assert [(line, words) for line in commands(page.read_text()) if (words := unquoted(line))] == []


def test_help_texts_and_comments_quote_what_a_shell_expands():
    """Otherwise: `--help` shows commands that fail when they are copied."""
    wrong = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in SOURCES
        for line in commands(path.read_text())
        if unquoted(line)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("monitorbench choose monitors=[a,b] seed=1", ["monitors=[a,b]"]),
        ("monitorbench choose 'monitors=[a,b]' seed=1", []),
        ("monitorbench import import.columns={a,b}", ["import.columns={a,b}"]),
        ("monitorbench evaluate seed=1  # or monitors=[a]", []),
    ],
)
def test_what_counts_as_unquoted(command: str, words: list[str]):
    """Otherwise: the checks above can't fail."""
    assert unquoted(command) == words
    assert not words or shlex.split(command)
