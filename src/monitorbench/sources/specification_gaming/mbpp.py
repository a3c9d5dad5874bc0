"""MBPP (Austin et al. 2021, arXiv:2108.07732; CC-BY-4.0): short Python problems with a few asserts each.

Where the authors checked a problem by hand (the sanitized file, 427 of 974), that version of it is read.
The first asserts, if every argument and the result are literals, are the examples a request may show; the
others stay hidden. Problems are parsed, never run.
"""

import ast
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench.construct import counterfactual
from monitorbench.construct.code import incentive
from monitorbench.sources.declaration import CodingProblems, SourceDeclaration, as_special_cased
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import CodingProblem, DocstringExample

_NAME = "mbpp"
_HIDDEN_AT_LEAST = 2  # where there are three or more
_SHOWN_AT_MOST = 3


def load(files: SourceFiles) -> Iterator[CodingProblem]:
    """The hand-checked problems, then all others; a problem without literal asserts has no examples.

    A problem's code is returned even where it doesn't hold what its asserts say; comments are gone.
    """
    licence = files.source.licence
    seen: set[str] = set()
    for problem in files.json("sanitized", lambda row: _problem(row, "prompt", licence)):
        seen.add(problem.id)
        yield problem

    def unseen(row: Mapping[str, Any]) -> CodingProblem | None:
        problem = _problem(row, "text", licence)
        return None if problem.id in seen else problem

    yield from files.jsonl("mbpp.jsonl", unseen)


def _problem(row: Mapping[str, Any], description: str, licence: str) -> CodingProblem:
    number = row.get("task_id")
    if not isinstance(number, int):
        raise BadRow("field 'task_id' is not a whole number")
    code = _canonical(filled(row, "code"), "code")
    tests = [*_texts(row, "test_list"), *_texts(row, "challenge_test_list")]
    tests = list(dict.fromkeys(_canonical(test, "test_list") for test in tests))
    setup = [*_texts(row, "test_imports"), *([row["test_setup_code"]] if row.get("test_setup_code") else [])]
    entry_point, examples = _examples(tests)
    hidden = [test for test in tests if test not in [assertion for assertion, _ in examples]]
    return CodingProblem(
        id=str(number),
        source=_NAME,
        licence=licence,
        entry_point=entry_point,
        reference=code,
        description=filled(row, description).strip(),
        examples=tuple(example for _, example in examples),
        hidden="\n".join([*setup, *hidden]),
    )


def _canonical(code: str, field: str) -> str:
    """Print code in one form without comments, so that tests compare; `BadRow` for what is no Python."""
    try:
        with warnings.catch_warnings():
            # Invalid escapes in upstream's strings are no news to our user.
            warnings.simplefilter("ignore")
            return ast.unparse(ast.parse(code))
    except SyntaxError as error:
        raise BadRow(f"field {field!r} is no Python ({error.msg})") from error


def _texts(row: Mapping[str, Any], field: str) -> list[str]:
    values = row.get(field, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadRow(f"field {field!r} is no list of texts")
    if field == "test_list" and not values:
        raise BadRow(f"field {field!r} is empty")
    return [value.strip() for value in values]


def _examples(tests: list[str]) -> tuple[str, list[tuple[str, DocstringExample]]]:
    """The function under test, and the first asserts that can be shown, each with its example."""
    readable: list[tuple[str, str, DocstringExample]] = []
    n_visible = min(_SHOWN_AT_MOST, max(1, len(tests) - _HIDDEN_AT_LEAST)) if len(tests) > 1 else 0
    for test in tests[:n_visible]:
        if (read := _example(test)) is not None:
            readable.append((test, *read))
    if not readable:
        return "", []
    name = readable[0][1]
    return name, [(test, example) for test, called, example in readable if called == name]


def _example(test: str) -> tuple[str, DocstringExample] | None:
    """Read `assert name(literals) == literal`; sets are left out, as they have no order to be shown in."""
    try:
        match ast.parse(test).body:
            case [
                ast.Assert(
                    test=ast.Compare(
                        left=ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]),
                        ops=[ast.Eq()],
                        comparators=[result],
                    )
                )
            ]:
                for node in (*arguments, result):
                    ast.literal_eval(node)
                    if any(isinstance(child, ast.Set) for child in ast.walk(node)):
                        return None
            case _:
                return None
    except (SyntaxError, ValueError):
        return None
    literals = tuple(ast.unparse(argument) for argument in arguments)
    return name, DocstringExample(f"{name}({', '.join(literals)})", literals, ast.unparse(result))


SOURCE = SourceDeclaration(
    name=_NAME,
    version=1,
    read=load,
    construct=as_special_cased,
    constructions=(incentive.VERSION, counterfactual.VERSION),
    parts=4,
    weight=9,
    takes_elicited=True,
    questions=CodingProblems(load),
)
