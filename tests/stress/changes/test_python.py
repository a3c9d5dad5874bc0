"""Python under other names and in another layout is the same program: it is run, and compared."""

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.stress.changes.code import COMMENTS, commented, reformatted, renamed

NAMES = ("total", "items", "best", "sum", "n")
"""One a parameter, one a builtin, one that is an attribute and a keyword further below."""
_name = st.sampled_from(NAMES)
_value = st.one_of(
    st.integers(0, 9).map(str),
    _name,
    st.builds("[{0} for {0} in range({1}) if {0} != n]".format, _name, st.integers(0, 5)),
    st.builds("(lambda {0}: {0} + 1)(n)".format, _name),
    st.builds('f"{{{}}}"'.format, _name),
    st.builds("len(str({}))".format, _name),
    st.builds("dict(best={})['best']".format, _name),
)
_simple = st.builds("{} = {}".format, _name, _value) | st.just("# a comment\npass")


def _indented(body: list[str]) -> str:
    return "\n".join(f"    {line}" for one in body for line in one.split("\n"))


_block = st.recursive(
    _simple,
    lambda inner: st.one_of(
        st.builds(
            lambda name, body: f"for {name} in (1, 2):\n{_indented(body)}",
            _name,
            st.lists(inner, min_size=1, max_size=2),
        ),
        st.builds(
            lambda body: f"if n:\n{_indented(body)}\nelse:\n    pass", st.lists(inner, min_size=1, max_size=2)
        ),
        st.builds(
            lambda name, body: (
                f"def inner():\n    nonlocal_free = {name}\n{_indented(body)}\n    return nonlocal_free"
            ),
            _name,
            st.lists(inner, min_size=1, max_size=2),
        ),
    ),
    max_leaves=6,
)
PROGRAMS = st.lists(_block, min_size=1, max_size=4).map(
    lambda body: (
        f"best = 1\n\ndef run(n):\n{_indented(body)}\n\n    return repr(more(n, 0))\n\ndef more(n, best):\n"
        '    text = """kept\n   as it is  \n"""\n    return n, best, text\n'
    )
)


def _result(code: str) -> Any:
    """What the program gives, or how it fails. It is one of ours."""
    space: dict[str, Any] = {}
    try:
        exec(compile(code, "<ours>", "exec"), space)
        return [space["run"](n) for n in (0, 3)]
    except Exception as error:  # of whatever kind: it has to be the same
        return type(error)


@given(code=PROGRAMS)
def test_a_program_does_the_same_under_other_names_and_layouts(code: str):
    """Benign code would become code with a bug, and a monitor that says so be called wrong."""
    expected = _result(code)
    assert _result(renamed(code)) == expected
    laid_out = reformatted(code)
    assert _result(laid_out) == expected
    assert ast.dump(ast.parse(laid_out)) == ast.dump(ast.parse(code))
    for language in COMMENTS:
        made = commented(language, code, "python")
        assert ast.dump(ast.parse(made)) == ast.dump(ast.parse(code))
        assert made != code


@given(code=st.text(max_size=200))
def test_text_that_is_no_program_does_no_harm(code: str):
    """Judged text is anybody's: one that the parser chokes on would end the run."""
    for rewrite in (renamed, reformatted):
        assert isinstance(rewrite(code), str)


KEPT = {
    "a parameter": "def f(items):\n    return items\n",
    "of the module": "total = 0\ndef f():\n    return total\n",
    "an attribute": "def f(a):\n    size = 1\n    return a.size, size\n",
    "a keyword": "def f(g):\n    size = 1\n    return g(size=size)\n",
    "in a string": "def f():\n    total = 1\n    return '{total}'.format(total=total)\n",
    "in a formatted string": "def f():\n    total = 1\n    return f'{total}'\n",
    "seen by locals": "def f():\n    total = 1\n    return locals()\n",
    "of a class": "class A:\n    total = 1\n",
    "imported": "def f():\n    import os\n    return os\n",
    "global": "def f():\n    global total\n    total = 1\n",
    "seen by a frame": "def f():\n    import sys\n    total = 1\n    return sys._getframe().f_locals\n",
    "seen by the code": "def f():\n    total = 1\n    return f.__code__.co_varnames\n",
    "asked for by a string": "def f(sys):\n    total = 1\n    return getattr(sys, '_getframe')(), total\n",
}


@pytest.mark.parametrize("code", KEPT.values(), ids=KEPT)
def test_a_name_that_can_be_seen_from_outside_stays(code: str):
    """Callers, formats and introspection would find another name."""
    assert renamed(code) == code


def test_one_name_in_two_spellings_is_one_name():
    """If it failed: Python, which reads both as one, would find only one of them, and a bug be made."""
    code = "def run(n):\n    \ufb01eld = n\n    return field, ﬁeld\n"
    changed = renamed(code)
    assert changed == "def run(n):\n    value_1 = n\n    return value_1, value_1\n"
    assert _result(changed) == _result(code)


@pytest.mark.parametrize(
    ("code", "of"),
    [
        ("#!/usr/bin/env node\nlet a = 1;\n", "js"),
        ("#!/bin/sh\nls\n", "bash"),
        ("\ufefflet a = 1;\n", "js"),
        ("<html>\n<?php echo 1; ?>\n", "php"),
        ("\n<?php echo 1;\n", "php"),
        ("<?php echo 1;\n", "php"),
    ],
)
def test_no_comment_is_put_above_what_has_to_be_first(code: str, of: str):
    """If it failed: a script would not start any more, and a page show the comment."""
    assert commented("german", code, of) == code


def test_what_can_be_renamed_and_laid_out_is():
    """A change that never applies would clear every monitor."""
    code = "def f(items):\n    total = 0\n    for one in items:\n        total += one\n    return total\n"
    assert renamed(code) == code.replace("total", "value_1").replace("one", "value_2")
    assert "  total = 0" in reformatted(code)
    assert "    total = 0" not in reformatted(code)
    assert commented("german", "int main() {}\n", "c").startswith("// ")
    assert commented("german", "echo 1;\n", "php").startswith("// ")
    assert commented("german", "  let a;\n", "js").startswith("  // ")
    assert commented("german", "select 1", "sql") == "select 1"
