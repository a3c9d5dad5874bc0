"""Candidates that want to take the machine, or the batch, down with them: each is one verdict of its own."""

import sys
from pathlib import Path

import pytest
import yaml

from monitorbench.sandbox.run import Program, RunResult, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="promises differ outside Linux")

BOMBS = {
    f"{name}, {when}": code
    for when, bombs in yaml.safe_load(
        (Path(__file__).parent / "bombs.yaml").read_text(encoding="utf-8")
    ).items()
    for name, code in bombs.items()
}


@pytest.fixture(scope="module")
def ended() -> dict[str, list[RunResult]]:
    """How each bomb ended, with a fine program before it and one after it; all in one batch."""
    fine = Program("def f(): return 0", "assert f() == 0")
    programs = [fine, *(one for code in BOMBS.values() for one in (Program(code, fine.check), fine))]
    results = run(programs, timeout_seconds=0.5, memory_mib=256, workers=2)
    return {name: results[2 * number :][:3] for number, name in enumerate(BOMBS)}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_its_own_verdict(ended, name):
    """If it failed: one response would end a build, or decide what others are labelled."""
    assert [one.passed for one in ended[name]] == [True, False, True], ended[name]
