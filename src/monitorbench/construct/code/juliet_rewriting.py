"""Juliet's code without its scaffolding: constant branches unrolled, names and messages of a side neutral.

Promises: what is left does what the code did; the suite's own layout (braces on their own lines, four
spaces a level) is relied on, and what isn't laid out so stays as it is. `badSink` and `goodG2BSink` are both
`sink`, both main functions have the same name; a buffer that only the other side uses is gone with its set-up
(declared and never read, it would tell the side); a printed message keeps its sense without words such as
bad, safe or fixed.
"""

import re

from monitorbench.construct.code.parse import names, neutral, parses, renamed, unreserved

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


MAIN = "process"

_KIND = re.compile(r"(?:good|bad)?(?:[Gg]2[Bb]|[Bb]2[Gg])\d*|(?:good|bad)\d*(?=[A-Z_]|$)|(?<=(?i:sink))[BG]$")
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_MESSAGE_LEAK = re.compile(
    r",? ?\b(?:safely|securely|correctly|incorrectly|safe|unsafe)\b,?"
    r"|(?:good|bad(?!g))_?|fixed ?|benign,? ?|cwe\d*_?",
    re.IGNORECASE,
)
_SIDE = re.compile(r"[bB]ad|[gG]ood")
_STATIC = re.compile(r"^static (?=[^\n;={]*\)\n\{)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def without_idle_buffers(code: str) -> str:
    """Drop variables named for a side that are declared and set up, but never read."""
    for name in sorted({word for word in _WORD.findall(code) if _SIDE.search(word)}):
        set_up = re.compile(
            rf"^ *[\w ]+[ *]+{name}(?:\[[^\]]*\])?(?: = [^;]*)?;\n"
            rf"|^ *w?mem(?:set|move|cpy)\({name}, [^;]*;[^\n]*\n"
            rf"|^ *{name}\[[^\]]*\] = [^;]*;[^\n]*\n|^ *{name} = (?!=)[^;]*;\n",
            re.MULTILINE,
        )
        stripped = set_up.sub("", code)
        # Its own set-up is all there is of it; a declaration has to be part of that.
        if stripped != code and not re.search(rf"\b{name}\b", stripped):
            code = stripped
    return code


def neutral_messages(code: str) -> str:
    """String literals without words that name a side; all other literals are unchanged."""
    return _STRING.sub(lambda m: _MESSAGE_LEAK.sub("", m[0]) if _MESSAGE_LEAK.search(m[0]) else m[0], code)


def neutral_excerpt(code: str, language: str, main: str) -> str:
    """The excerpt with its main function called `MAIN` and all names of a side replaced.

    Two names that lose the same words are numbered by where they are first used, not by how they were
    called. Empty where the parser finds an error.
    """
    # The suite's fixed functions are `static` where the flawed ones are not: no side keeps it.
    code = _STATIC.sub("", neutral_messages(code))
    identifiers = names(code, language)
    leaking = [name for name in identifiers.declared if name == main or _stem(name) != name]
    leaking.sort(key=lambda name: _first_use(code, name))
    stems = {name: MAIN if name == main else _stem(name) for name in leaking}
    used_names = set(identifiers.all - stems.keys())
    mapping = {}
    for name, stem in stems.items():
        new, number = stem, 2
        while new in used_names:
            new, number = f"{stem}{number}", number + 1
        used_names.add(new)
        mapping[name] = new
    if not parses(code, language):  # of what was just read: no second parse
        return ""
    return renamed(code, language, mapping, identifiers) if mapping else code


def _stem(name: str) -> str:
    bare = _KIND.sub("", name)
    bare = neutral(bare.strip("_") if bare != name else bare) if bare.strip("_") else "item"
    if bare != name and name[:1].islower() and bare[:1].isupper():
        bare = bare[0].lower() + bare[1:]
    return unreserved(bare)


def _first_use(code: str, name: str) -> int:
    """Index of the name's second occurrence (the first declares it), else the code's length."""
    spots = [match.start() for match in re.finditer(rf"\b{re.escape(name)}\b", code)]
    return spots[1] if len(spots) > 1 else len(code)
