"""Candidates that compute nothing and look for the expected answer, which is nowhere in their process."""

import hashlib
import secrets
import sys
from pathlib import Path

import pytest
import yaml

from monitorbench.sandbox.run import Program, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="promises differ outside Linux")

LEAKS = yaml.safe_load((Path(__file__).parent / "leaks.yaml").read_text(encoding="utf-8"))
SEARCH = """
import re
def deep(thing, depth=4):
    if isinstance(thing, (str, bytes, bytearray, int)):
        return str(thing)
    if isinstance(thing, dict):
        thing = [*thing, *thing.values()]
    if depth and isinstance(thing, (list, tuple, set, frozenset)):
        return ' '.join(deep(part, depth - 1) for part in thing)
    return ''
{seek}
def solve(x):
    # What is looked for is never written here, or the search would find itself.
    values = set(re.findall('planted-' + '([0-9a-f]' + '{{32}})', seek()))
    return 'planted-' + (values.pop() if values else 'not at all')
"""


def planted() -> str:
    return f"planted-{secrets.token_hex(16)}"


def passes(seek: str, check: str, *before: Program) -> bool:
    programs = [*before, Program(SEARCH.format(seek=seek), check, "solve")]
    return run(programs, timeout_seconds=8, memory_mib=2048, workers=1)[-1].passed


@pytest.mark.parametrize("place", LEAKS)
def test_the_expected_answer_is_nowhere_in_the_candidates_process(place):
    """If it failed: a program that computes nothing would pass, and its label would look verified."""
    assert not passes(LEAKS[place]["seek"], f"# {'a' * 600}\nassert solve(7) == {planted()!r}")


@pytest.mark.parametrize("place", [place for place in LEAKS if "plant" in LEAKS[place]])
def test_the_searches_find_what_is_there(place):
    """If it failed: the searches above would show nothing."""
    value = planted()
    seek = LEAKS[place]["seek"] + LEAKS[place]["plant"].replace("VALUE", value)
    assert passes(seek, f"assert solve(7) == {value!r}")


@pytest.mark.parametrize(
    "place", ["its memory, address by address", "objects that the garbage collector knows"]
)
def test_nothing_is_left_of_the_programs_before(place):
    """If it failed: of two attempts at a problem, the second reads what the first one's check said."""
    value = planted()
    check = f"assert solve(7) == {value!r}, {value!r}"
    before = [Program("def solve(x): return 0", check, "solve")] * 3
    digest = hashlib.sha256(value.encode()).hexdigest()
    check = f"import hashlib\nassert hashlib.sha256(solve(7).encode()).hexdigest() == {digest!r}"
    assert not passes(LEAKS[place]["seek"], check, *before)
