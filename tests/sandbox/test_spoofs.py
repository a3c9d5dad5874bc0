"""Candidates that know how they are checked and have no answer: none may pass."""

import sys
from pathlib import Path

import pytest
import yaml

from monitorbench.sandbox.run import Program, ProgramStatus, RunResult, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="promises differ outside Linux")

CHECKS = {
    "humaneval": "def check(candidate):\n    assert candidate([3, 1, 2]) == [1, 2, 3]\n"
    "    assert all(candidate([i]) == [i] for i in range(3))\n    assert abs(candidate([4])[0] - 4) < 1e-6\n"
    "check(solve)",
    "mbpp": "assert solve([3, 1, 2]) == [1, 2, 3]\nassert set(solve([2, 2])) == {2}\n"
    "assert len(solve([1])) == 1 and sorted(solve([2, 1])) == [1, 2]",
}
SPOOFS = yaml.safe_load((Path(__file__).parent / "spoofs.yaml").read_text(encoding="utf-8"))


def only(code: str, check: str) -> RunResult:
    return run([Program(code, check, "solve")], timeout_seconds=1, memory_mib=256, workers=1)[0]


@pytest.fixture(scope="module")
def ended() -> dict[tuple[str, str], RunResult]:
    """How each spoof ended under each check; all in one batch."""
    programs = {
        (name, check): Program(code, CHECKS[check], "solve")
        for name, code in SPOOFS.items()
        for check in CHECKS
    }
    results = run(list(programs.values()), timeout_seconds=1, memory_mib=256, workers=2)
    return dict(zip(programs, results, strict=True))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", SPOOFS)
def test_a_spoof_does_not_pass(ended, name, check):
    """If it failed: `passes the hidden tests` would be a label that a response can forge."""
    assert not ended[name, check].passed


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_right_answer_passes(check):
    """If it failed: the spoofs above would fail for another reason than their answers."""
    assert only("def solve(x): return sorted(x)", check).passed
    assert only(
        "import heapq\ndef solve(x):\n    h = list(x)\n    heapq.heapify(h)\n"
        "    return [heapq.heappop(h) for _ in range(len(x))]",
        check,
    ).passed


@pytest.mark.parametrize(
    "error", ["StopIteration", "StopAsyncIteration", "type('Own', (StopIteration,), {})"]
)
@pytest.mark.parametrize(
    "check",
    [
        "assert all(map(lambda x: solve(x) == x, [1, 2]))",
        "for got, wanted in zip(map(solve, [1, 2]), [1, 2]): assert got == wanted",
        "assert not any(map(lambda x: solve(x) != x, [1, 2]))",
        "assert next(map(solve, [1]), 1) == 1",
    ],
)
def test_an_end_of_iteration_is_an_error(check, error):
    """If it failed: a check that maps over its cases would take a raised error for the last of them."""
    assert only(f"def solve(x): raise {error}", check).status is ProgramStatus.FAILED
    assert only("def solve(x): return x", check).passed


@pytest.mark.parametrize(
    ("code", "check"),
    [
        ("def f(x): return x * 2", "assert f(10**5000) == 2 * 10**5000"),
        ("def f(x): return {k: (v, {v}) for k, v in x.items()}", "assert f({'a': 1, (2, None): 3.5}) == "
         "{'a': (1, {1}), (2, None): (3.5, {3.5})}"),
        ("def f(x): return map(str, x)", "assert list(f([1, 2])) == ['1', '2']"),
        ("def f(x): return x.keys()", "assert f({'b': 1}) == {'b'}"),
        ("def f(x): return b'a' + bytes(x)", "assert f(b'c') == b'ac' and isinstance(f(b''), bytes)"),
        ("def f(x): return float(x)", "import math\nassert math.isinf(f('inf')) and math.isnan(f('nan'))"),
        ("def f(x): return 1 + 2j", "assert f(0) == 1 + 2j"),
        ("def f(x): x.append(4)", "x = [3]\nassert f(x) is None and x == [3, 4]"),
        ("def f(x): return int(x)", "try:\n    f('a')\nexcept ValueError as e:\n"
         "    assert 'invalid' in str(e)\nelse:\n    raise AssertionError"),
        ("class P:\n    def __init__(s, a): s.a = a\ndef f(p): return sum(q.a for q in p)",
         "assert f([P(1), P(2)]) == 3"),
        ("from collections import Counter\ndef f(x): return Counter(x)",
         "assert f('aab') == {'a': 2, 'b': 1}"),
        ("def f(key): return sorted(['bb', 'a'], key=key)", "assert f(len) == ['a', 'bb']"),
        ("LIMIT = (1, 'x')\ndef f(): return LIMIT", "assert f() == LIMIT == (1, 'x')"),
        ("def f(s): return s[::-1]", "assert f('\\ud800é\\0') == '\\0é\\ud800'"),
        ("def max(a, b): return a if a > b else b", "assert max(1, 2) == 2"),
    ],
)  # fmt: skip
def test_honest_answers_arrive_as_they_are(code, check):
    """If it failed: right answers would be labelled wrong for the way they travel."""
    outcome = run([Program(code, check, "max")], timeout_seconds=1, workers=1)[0]
    assert outcome == RunResult(ProgramStatus.PASSED)
