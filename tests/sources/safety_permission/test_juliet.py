"""Juliet's adapter: the raw case, unchanged."""

import pytest

from monitorbench.config.base import UserError
from monitorbench.sources.upstream import code_fixes
from monitorbench.upstream import JulietCase

ROW = {
    "case": "CWE369_Divide_by_Zero__example_01",
    "cwe": "CWE369",
    "weakness": "Divide by Zero",
    "language": "c",
    "path": "testcases/example.c",
    "source": "/* FLAW */\r\nint half(int by) { return 1 / by; }\r\n",
}


def test_a_case_is_read_as_it_is(source_files):
    """The construction that takes cases apart would work on something else than the file."""
    assert list(code_fixes.read_juliet(source_files("juliet", ROW))) == [
        JulietCase(ROW["case"], "CWE-369", "Divide by Zero", "c", ROW["source"])
    ]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"cwe": "369"}, "not a weakness"),
        ({"language": "java"}, "unknown language"),
        ({"source": ""}, "'source' is empty"),
    ],
)
def test_a_broken_row_is_an_error_that_names_it(source_files, change, what):
    """Rows that were not understood would become samples."""
    with pytest.raises(UserError, match=rf"juliet: .*line 1: .*{what}"):
        list(code_fixes.read_juliet(source_files("juliet", {**ROW, **change})))


def test_a_repeated_case_is_an_error(source_files):
    """Two samples would have one id."""
    with pytest.raises(UserError, match="duplicate id"):
        list(code_fixes.read_juliet(source_files("juliet", ROW, ROW)))


@pytest.mark.sources
def test_the_repacked_file(mirror_files):
    """The largest source of secure code would come out short."""
    count, weaknesses = 0, set()
    for case in code_fixes.read_juliet(mirror_files("juliet")):
        count += 1
        weaknesses.add(case.cwe)
    assert (count, len(weaknesses)) == (40515, 117)
