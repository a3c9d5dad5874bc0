"""What is prose, what is code, and what in prose stays: of known and of hostile text."""

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_things import KEPT, WORDS

from monitorbench.stress.changes import pieces as dividing
from monitorbench.stress.changes import places
from monitorbench.stress.changes.pieces import kept_spans, pieces
from monitorbench.stress.changes.places import halves

PROGRAM = "def double(n):\n    return 2 * n\n"
CODE = {
    "a fence": (f"Look:\n```python\n{PROGRAM}```\nDone.", PROGRAM, "python"),
    "a fence that is not closed": (f"Look:\n```python\n{PROGRAM}", PROGRAM, "python"),
    "a longer closing": (f"```py\n{PROGRAM}`````\nDone.", PROGRAM, "py"),
    "a fence in a fence": (f"````md\n```\n{PROGRAM}```\n````\nDone.", f"```\n{PROGRAM}```\n", "md"),
    "another mark": (f"~~~ruby\n```\n{PROGRAM}~~~\nDone.", f"```\n{PROGRAM}", "ruby"),
    "a quoted fence": ("> ```c\n> int a;\n> ```\nDone.", "> int a;\n", ""),
    "a quotation that ends": ("> ```c\n> int a;\nDone.", "> int a;\n", ""),
    "in a list": (f"- ```js\n  let a;\n  ```\n{'Done.'}", "  let a;\n", "js"),
    "no fence": (PROGRAM, PROGRAM, "python"),
    "below a sentence": (f"This does it.\n\nn = 1\n{PROGRAM}", f"n = 1\n{PROGRAM}", "python"),
    "among sentences": (f"This does it.\n\n{PROGRAM}\nIt is short.", PROGRAM, "python"),
    "braces among sentences": ("So:\nint f() {\n  return 1;\n}\nDone.", "int f() {\n  return 1;\n}\n", ""),
    "indented": ("Run this:\n\n    make all\n\nDone.", "    make all\n", ""),
    "JSON": ('{"a": "do not", "b": [1]}', '{"a": "do not", "b": [1]}', ""),
    "JSON below a sentence": ('Sent:\n{"a": "do not"}\nDone.', '{"a": "do not"}\n', ""),
    "a shell": ("Then:\n$ rm -r cache\nDone.", "$ rm -r cache\n", ""),
    "a table": ("Here:\n\n| a | b |\n| - | - |\n\nDone.", "| a | b |\n| - | - |\n", ""),
}


@pytest.mark.parametrize(("text", "code", "language"), CODE.values(), ids=CODE)
def test_code_is_found_however_it_stands_there(text: str, code: str, language: str):
    """If it failed: code would be respelled or cut in two, and benign code become code with a bug."""
    found = pieces(text)
    assert "".join(one.text for one in found) == text
    assert [(one.text, one.language) for one in found if one.kind == "code"] == [(code, language)]


@pytest.mark.parametrize(
    "text",
    [
        "It has ```three``` of them.",
        "- the first;\n- the second;\n- the third;",
        "import taxes rise.\nfrom here on, they fall.",
        "I class them as:\nif you ask, then all.",
    ],
)
def test_prose_is_not_taken_for_code(text: str):
    """If it failed: the changes of prose would leave it alone, and clear every monitor."""
    assert [one.kind for one in pieces(text)] == ["prose"]


@given(parts=st.lists(st.sampled_from(KEPT) | st.sampled_from(WORDS), min_size=1, max_size=8))
def test_what_has_to_stay_is_found(parts: list[str]):
    """If it failed: a quoted file would be another than the tool's, an address one that frauds use."""
    text = " ".join(parts)
    spans = kept_spans(text)
    assert spans == sorted(spans)
    at = 0
    for part in parts:
        if part in KEPT:
            assert any(start <= at and at + len(part) <= end for start, end in spans), part
        at += len(part) + 1


def test_words_of_people_are_free():
    """If it failed: no letter would be respelled, and every monitor be cleared."""
    assert (
        kept_spans("Please don't; it’s the clerks' room, **really** (and well-known) — so what? I am.") == []
    )


DEGENERATE: dict[str, Callable[[int], str]] = {
    "openings": lambda n: "```python\n" * n,
    "backticks": lambda n: "`" * n,
    "runs of backticks": lambda n: "".join("`" * (1 + i % 7) + " " for i in range(n)),
    "one opening and many lines": lambda n: "~~~\n" + "a\n" * n,
    "quoted": lambda n: "> ```\n" * n,
    "quotation marks": lambda n: ' "a' * n,
    "openings of quotations": lambda n: "“" * n,
    "apostrophes": lambda n: " 'a" * n,
    "prices": lambda n: " $a" * n,
    "a word": lambda n: "a" * n,
    "a name": lambda n: "a_" * n,
    "spaces": lambda n: " " * n,
    "blank lines": lambda n: "\n" * n,
    "beginnings of programs": lambda n: "import a\nso.\n" * n,
    "beginnings of lists": lambda n: "[\n" * n,
    "statements": lambda n: "a;\nb\n" * n,
    "decorators": lambda n: "@a\n" * n,
    "sentences": lambda n: "A word. " * n,
}


def _steps(text: str) -> int:
    """How many lines of the changes are run for it."""
    count = 0
    former = sys.gettrace()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if "stress/changes" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        halves(text)
        kept_spans(text)
    finally:
        sys.settrace(former)
    return count


@pytest.mark.parametrize("made", DEGENERATE.values(), ids=DEGENERATE)
def test_twice_the_text_takes_no_more_than_twice_the_steps(made: Callable[[int], str]):
    """If it failed: one hostile response would stall a run for hours."""
    assert _steps(made(400)) <= 2 * _steps(made(200)) + 100


@pytest.mark.parametrize("module", [dividing, places], ids=lambda one: one.__name__)
def test_no_expression_takes_a_step_back(module: Any):
    """If it failed: the steps within an expression, which nobody counts, would be too many for hostile text.

    An expression matches so many characters at most, or has only repeats that give nothing back.
    """
    patterns = [one for one in vars(module).values() if isinstance(one, re.Pattern)]
    for one in [*patterns, *getattr(module, "_BOUNDARIES", {}).values()]:
        repeats = re.sub(r"\\.|\[(?:\\.|[^\]\\])+\]", "c", one.pattern)
        giving_back = re.sub(r"[*+?}]\+", "", repeats)
        assert not re.search(r"[*+]", giving_back), one.pattern
