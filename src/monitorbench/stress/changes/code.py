"""Changes of code that change nothing it does: its layout, its local names, comments in other languages."""

import io
import tokenize
from collections.abc import Callable
from functools import partial
from random import Random

from monitorbench.records import Sample
from monitorbench.stress.changes.change import SampleChange, wordings
from monitorbench.stress.changes.places import rewritten
from monitorbench.stress.changes.reformatted import reformatted
from monitorbench.stress.changes.renamed import renamed
from monitorbench.stress.changes.text.pieces import PYTHON, in_code
from monitorbench.stress.changes.text.unfenced import parsed

COMMENTS: dict[str, list[str]] = wordings()["comments"]
"""Two comments a language that say what could stand above any function."""

_SLASHES = frozenset(
    (
        *("c", "h", "cpp", "c++", "cc", "java", "javascript", "js", "typescript", "ts", "go", "rust", "rs"),
        *("csharp", "cs", "c#", "kotlin", "swift", "scala", "dart", "php"),
    )
)
_HASHES = frozenset(("bash", "sh", "shell", "zsh", "ruby", "rb", "perl", "r", "yaml", "yml", "toml"))
_FIRST = ("#!", "\ufeff")
"""Beginnings of code that have to stay in its first line."""


def _python(rewrite: Callable[[str], str]) -> Callable[[Sample, Random], Sample | None]:
    def of_code(code: str, language: str) -> str:
        return rewrite(code) if language in PYTHON or not language else code

    of_text = partial(in_code, rewrite=of_code)
    return lambda sample, _: rewritten(sample, of_text)


def commented(language: str, code: str, of: str) -> str:
    """Code of the programming language `of` with comments in another human language; as it is if unknown.

    One above the whole, unless its first line has to be the first, as `#!` has, and what stands above PHP's
    `<?` is a page's text; in Python one above each function and class of the module too.
    """
    first, second = COMMENTS[language]
    if of in _SLASHES | _HASHES:
        mark = "//" if of in _SLASHES else "#"
        stays = code.startswith(_FIRST) or (of == "php" and ("<?" in code or code.lstrip().startswith("<")))
        return code if stays else f"{_indentation(code)}{mark} {first}\n{code}"
    if of not in PYTHON or (tree := parsed(code)) is None:
        return code
    lines = list(io.StringIO(code))
    starts = [
        min([statement.lineno, *(decorator.lineno for decorator in statement.decorator_list)])
        for statement in tree.body
        if hasattr(statement, "decorator_list")
    ]
    for line in reversed(starts):
        lines.insert(line - 1, f"# {second}\n")
    if not code.startswith(_FIRST):
        lines.insert(0, f"# {first}\n")
    altered = "".join(lines)
    return altered if _same_program(code, altered) else code


def _indentation(code: str) -> str:
    line = code.partition("\n")[0]
    return line[: len(line) - len(line.lstrip())] if line.strip() else ""


def _same_program(code: str, made: str) -> bool:
    """Whether both have the same tokens but for comments and line ends between statements."""
    left_out = (tokenize.COMMENT, tokenize.NL)
    try:
        both = [
            [
                (token.type, token.string)
                for token in tokenize.generate_tokens(io.StringIO(program).readline)
                if token.type not in left_out
            ]
            for program in (code, made)
        ]
    except (SyntaxError, tokenize.TokenError):
        return False
    return both[0] == both[1]


def _comments(language: str, sample: Sample, _: Random) -> Sample | None:
    return rewritten(sample, partial(in_code, rewrite=partial(commented, language)))


CODE = (
    SampleChange("code.reformatted", _python(reformatted), version=2),
    SampleChange("code.renamed", _python(renamed), version=2),
    *(SampleChange(f"comments.{language}", partial(_comments, language), version=2) for language in COMMENTS),
)
