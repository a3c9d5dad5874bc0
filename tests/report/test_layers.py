"""Arrows go one way: what computes knows nothing of what prints, metrics nothing of settings."""

import ast
from pathlib import Path

import pytest

import monitorbench

PACKAGE = Path(monitorbench.__file__).parent
NEVER = {
    "metrics": {"config", "scoring", "report", "judging", "engines", "runs", "studies", "rich", "matplotlib"},
    "scoring": {"report", "studies", "rich", "matplotlib"},
    "library": {"report", "studies", "rich", "matplotlib"},
}


def imported(file: Path) -> set[str]:
    """The package's rooms, and other packages, that a file imports anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.removeprefix("monitorbench.").partition(".")[0] for name in names}


@pytest.mark.parametrize("room", NEVER)
def test_what_computes_never_imports_what_prints(room: str) -> None:
    """If it failed: a number could be made where it is shown, and one place would show another's."""
    files = list((PACKAGE / room).rglob("*.py"))
    assert len(files) > 5
    assert {file.name: both for file in files if (both := imported(file) & NEVER[room])} == {}


def test_the_rooms_are_read_as_they_are() -> None:
    """A check that sees no import would find none anywhere."""
    assert {"metrics", "scoring", "report"} <= imported(PACKAGE / "report/tables/tables.py")
    assert "rich" in imported(PACKAGE / "report/tables/terminal.py")
