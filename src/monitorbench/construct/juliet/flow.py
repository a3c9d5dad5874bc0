"""Juliet's control-flow variants, unrolled: a branch on a constant becomes the code it runs.

Promises: what is left does what the code did; the suite's own layout (braces on their own lines, four
spaces a level) is relied on, and what isn't laid out so stays as it is.
"""

import re

_TRUE = (
    r"1|5\s*==\s*5|STATIC_CONST_TRUE|staticTrue|STATIC_CONST_FIVE\s*==\s*5|staticFive\s*==\s*5|"
    r"staticReturnsTrue\(\)|GLOBAL_CONST_TRUE|globalTrue|globalReturnsTrue\(\)|GLOBAL_CONST_FIVE\s*==\s*5|"
    r"globalFive\s*==\s*5"
)
_FALSE = (
    r"0|5\s*!=\s*5|STATIC_CONST_FALSE|staticFalse|STATIC_CONST_FIVE\s*!=\s*5|staticFive\s*!=\s*5|"
    r"staticReturnsFalse\(\)|GLOBAL_CONST_FALSE|globalFalse|globalReturnsFalse\(\)|"
    r"GLOBAL_CONST_FIVE\s*!=\s*5|globalFive\s*!=\s*5"
)
_BLOCK = r"(?P={i})\{{\n(?P<{b}>(?:(?P={i})[ ]+.*\n|\s*\n)*)(?P={i})\}}\n"
_IF = re.compile(
    rf"^(?P<i> *)if\s*\((?:(?P<true>{_TRUE})|(?P<false>{_FALSE}))\)\n"
    + _BLOCK.format(i="i", b="then")
    + r"(?:(?P=i)else\n"
    + _BLOCK.format(i="i", b="other")
    + ")?",
    re.MULTILINE,
)
_ONCE = re.compile(
    r"^(?P<i> *)for\((?P<v>[hijk]) = 0; (?P=v) < (?P<n>[01]); (?P=v)\+\+\)\n"
    + _BLOCK.format(i="i", b="then"),
    re.MULTILINE,
)
_WHILE = re.compile(
    r"^(?P<i> *)while\(1\)\n(?P=i)\{\n(?P<then>(?:(?P=i)[ ]+.*\n|\s*\n)*?)(?P=i)    break;\n(?P=i)\}\n",
    re.MULTILINE,
)
_CASE = r"(?P<{b}>(?:(?P=i)(?!case |default:|break;|    break;).*\n)*?)(?P=i)(?:    )?break;\n"
_SWITCH = re.compile(
    r"^(?P<i> *)switch\((?P<on>\d)\)\n(?P=i)\{\n(?P=i)case (?P<case>\d):\n"
    + _CASE.format(b="then")
    + r"(?P=i)default:\n"
    + _CASE.format(b="other")
    + r"(?P=i)\}\n",
    re.MULTILINE,
)
_GOTO = re.compile(r"^ *goto (?P<label>source|sink);\n(?P=label):\n", re.MULTILINE)
_COUNTERS = re.compile(r"(?<=^\{\n)    int [hijk](?:, ?[hijk])*;\n", re.MULTILINE)
_LEVEL = re.compile(r"^    ", re.MULTILINE)
_HINT = re.compile(
    r"\bif\s*\((?:[015]|STATIC|static|GLOBAL|global)|for\(\w = 0; \w < [01];|while\(1\)|switch\(\d\)|goto s"
)
_HELPER = re.compile(
    r"^static (?:const )?int (?:STATIC_CONST_\w+|static(?:True|False|Five)) = \d;\n"
    r"|^static int staticReturns\w+\(\)\n\{\n.*\n\}\n",
    re.MULTILINE,
)


def unrolled(code: str) -> str:
    """The code with constant branches, one-pass loops and jumps to the next line replaced by what runs."""
    if _HINT.search(code) is None:
        return code
    code = _HELPER.sub("", _GOTO.sub("", code))
    for _ in range(4):  # the deepest nesting in the suite is two
        before = code
        code = _IF.sub(_taken, code)
        code = _WHILE.sub(lambda m: _shifted(m["then"]), code)
        if _ONCE.search(code):  # counters of these loops are declared first thing in the function
            code = _COUNTERS.sub("", code)
            code = _ONCE.sub(lambda m: _shifted(m["then"]) if m["n"] == "1" else "", code)
        code = _SWITCH.sub(_case, code)
        if code == before:
            break
    return code


def _taken(match: re.Match[str]) -> str:
    return _shifted(match["then"] if match["true"] else match["other"] or "")


def _case(match: re.Match[str]) -> str:
    block = match["then" if match["on"] == match["case"] else "other"]
    return _shifted(block) if block.startswith(match["i"] + "    ") else block


def _shifted(block: str) -> str:
    return _LEVEL.sub("", block)
