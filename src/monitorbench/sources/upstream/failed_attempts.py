"""Reflexion's logs as coding problems: HumanEval's and MBPP's, with programs of a model that failed them."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench import strict_json
from monitorbench.sources.declaration import SPECIAL_CASED, SourceDeclaration
from monitorbench.sources.read import BadRow, SourceFiles, filled, text
from monitorbench.sources.upstream.coding_problems import asserted_examples, humaneval_problem
from monitorbench.upstream import CodingProblem

_RUNS = re.compile(r"programming_runs/root/(?:simple|reflexion)_(?:mbpp|human_?eval)[^/]*/[^/]+\.jsonl")
_MBPP_NAME = re.compile(r"mbpp_(\d+)_\w+")


def read_reflexion(files: SourceFiles) -> Iterator[CodingProblem]:
    """Problems that some run failed, in the order of their names.

    MBPP's have no reference in the logs: it is the shortest program that another run solved them with.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    programs: defaultdict[str, dict[bool, set[str]]] = defaultdict(lambda: {True: set(), False: set()})
    for member, content in files.tar(""):
        if not _RUNS.fullmatch(member):
            continue
        for number, line in enumerate(content.splitlines(), 1):
            try:
                row = strict_json.loads(line)
                name = row["task_id"] if "task_id" in row else filled(row, "name")
                if program := text(row, "solution").strip():
                    programs[name][bool(row.get("is_solved"))].add(program)
                rows.setdefault(name, row)
            except (BadRow, ValueError, TypeError) as error:
                files.bad(f"{member} line {number}", str(error) or "no object with fields")
    for name, row in sorted(rows.items()):
        solved, failed = programs[name][True], sorted(programs[name][False])
        reference = min(solved, key=lambda code: (len(code), code), default="")
        try:
            problems = list(_problems(row, reference)) if failed else []
        except (BadRow, KeyError, SyntaxError, TypeError, ValueError) as error:
            files.bad(f"problem {name}", str(error))
            continue
        for problem in problems:
            yield problem._replace(source="reflexion", licence="MIT", failed_attempts=tuple(failed))


def _problems(row: Mapping[str, Any], solution: str) -> Iterator[CodingProblem]:
    """The problem of one row, in the group that it is in elsewhere; MBPP's once with each assert shown."""
    if "task_id" in row:
        problem = humaneval_problem(row)
        yield problem._replace(id=f"humaneval-{problem.id}", group=f"humaneval-{problem.id}")
        return
    matched = _MBPP_NAME.fullmatch(filled(row, "name"))
    if matched is None or not solution:
        return
    tests = [_test_of(node, row["entry_point"]) for node in ast.walk(ast.parse(row["test"]))]
    asserted = [test for test in tests if test]
    (function,) = (node for node in ast.parse(row["prompt"]).body if isinstance(node, ast.FunctionDef))
    for number, shown in enumerate(asserted):
        hidden = [test for test in asserted if test != shown]
        entry_point, examples = asserted_examples([shown, *hidden])
        if not hidden or not examples or examples[0][0] != shown:
            continue
        yield CodingProblem(
            id=f"mbpp-{matched[1]}-{number}",
            source="",
            licence="",
            entry_point=entry_point,
            reference=solution,
            description=(ast.get_docstring(function) or "").strip(),
            examples=(examples[0][1],),
            hidden="\n".join(hidden),
            group=f"mbpp-{matched[1]}",
        )


def _test_of(node: ast.AST, entry_point: str) -> str:
    """An assert of the tests, which call `candidate`, with the function's own name; else empty."""
    if not isinstance(node, ast.Assert):
        return ""
    for call in ast.walk(node):
        if isinstance(call, ast.Name) and call.id == "candidate":
            call.id = entry_point
    return ast.unparse(node)


SOURCE = SourceDeclaration(
    name="reflexion", version=1, read=read_reflexion, construct=SPECIAL_CASED, parts=2, weight=4
)
"""Reflexion's logs (Shinn et al. 2023, arXiv:2303.11366; MIT): GPT-4's programs for HumanEval and MBPP.

Upstream says which passed the benchmarks' tests; that is checked again by execution. What failed and holds no
table of the examples is an honest failure of a model. Its groups are those of `humaneval` and `mbpp`.
"""
