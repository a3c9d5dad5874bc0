"""Candidates that want to take the machine, or the batch, down with them: each is one verdict of its own."""

import sys
from pathlib import Path

import pytest
import yaml

from monitorbench.sandbox.run import Program, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="promises differ outside Linux")

BOMBS = {
    f"{name}, {when}": code
    for when, bombs in yaml.safe_load(
        (Path(__file__).parent / "bombs.yaml").read_text(encoding="utf-8")
    ).items()
    for name, code in bombs.items()
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_its_own_verdict(name):
    """If it failed: one response would end a build, or decide what others are labelled."""
    fine = Program("def f(): return 0", "assert f() == 0")
    before, bomb, after = run(
        [fine, Program(BOMBS[name], fine.check), fine], timeout_seconds=0.5, memory_mib=256, workers=1
    )
    assert before.passed
    assert after.passed
    assert not bomb.passed
