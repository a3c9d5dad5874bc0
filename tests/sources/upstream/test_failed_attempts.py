"""A model's failed programs are read with their problems, and with a reference that another run wrote."""

import io
import json
import tarfile

import pytest

from monitorbench.config.base import UserError
from monitorbench.sources.upstream.coding_problems import read_reflexion

PROMPT = 'def square(n: int) -> int:\n    """\n\tWrite a function that squares.\n\t"""\n'
RIGHT, WRONG = "def square(n: int) -> int:\n    return n * n", f"{PROMPT}    return n * 3"
ASSERTS = ("candidate(3) == 9", "candidate(f(0)) == 0", "candidate(5) == 25")
TESTS = "def check(candidate):\n" + "".join(f"    assert {test}\n" for test in ASSERTS)
ROW = {"name": "mbpp_7_square", "prompt": PROMPT, "entry_point": "square", "test": TESTS}


def failed(**fields):
    return {**ROW, "solution": WRONG, "is_solved": False, **fields}


SOLVED = failed(solution=RIGHT, is_solved=True)


@pytest.fixture
def load(source_files):
    """`load(run=[row, …])` reads an archive with one log a run."""

    def read(**runs):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for run, rows in runs.items():
                content = "\n".join(json.dumps(row) for row in rows).encode()
                info = tarfile.TarInfo(f"programming_runs/root/{run}/log.jsonl")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return list(read_reflexion(source_files("reflexion", also={"runs.tar.gz": buffer.getvalue()})))

    return read


def test_each_assert_of_literals_is_shown_once_and_the_others_are_hidden(load):
    """Attempts that pass another assert than the first would be lost, or a hidden test be shown."""
    problems = load(simple_mbpp_py=[failed()], reflexion_mbpp_py=[SOLVED], testacc_mbpp_py=[{}])
    assert [problem.id for problem in problems] == ["mbpp-7-0", "mbpp-7-2"]
    assert [problem.examples[0].call for problem in problems] == ["square(3)", "square(5)"]
    assert problems[0].hidden == "assert square(f(0)) == 0\nassert square(5) == 25"
    for problem in problems:
        assert (problem.group, problem.source, problem.licence) == ("mbpp-7", "reflexion", "MIT")
        assert problem.description == "Write a function that squares."
        assert (problem.reference, problem.failed_attempts) == (RIGHT, (WRONG,))


@pytest.mark.parametrize(
    "runs",
    [{"simple_mbpp_py": [SOLVED]}, {"simple_mbpp_py": [failed()]}, {"simple_mbpp_py": [failed(solution="")]}],
    ids=["nobody failed", "nobody solved it", "nothing was written"],
)
def test_a_problem_without_both_is_passed_over(load, runs):
    """There would be no honest failure, or nothing to say what is right."""
    assert load(**runs) == []


def test_a_bad_row_is_named(load):
    """A log that another version writes would come out short."""
    with pytest.raises(UserError, match=r"simple_mbpp_py/log.jsonl line 2: field 'name' is empty"):
        load(simple_mbpp_py=[failed(), failed(name="")])


@pytest.mark.parametrize("broken", [{"test": "def ("}, {"prompt": "x = 1"}, {"entry_point": None}])
def test_a_problem_that_is_no_code_is_named(load, broken):
    """One broken row would end a build of an hour in a traceback."""
    with pytest.raises(UserError, match="problem mbpp_7_square"):
        load(simple_mbpp_py=[failed(**broken)], reflexion_mbpp_py=[SOLVED])


@pytest.mark.sources
def test_the_published_logs(mirror_files):
    """Attempts would be lost, or stand in another group than the problem that they answer."""
    problems = list(read_reflexion(mirror_files("reflexion")))
    assert len({problem.group for problem in problems}) == 87
    assert sum(len(attempts) for attempts in {p.group: p.failed_attempts for p in problems}.values()) == 113
