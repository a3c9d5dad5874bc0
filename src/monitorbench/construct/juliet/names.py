"""Neutral names and messages in a Juliet excerpt: the same on both sides for the same part of the code.

Promises: `badSink` and `goodG2BSink` are both `sink`, both main functions have the same name; a buffer
that only the other side uses is gone with its set-up (declared and never read, it would tell the side);
a printed message keeps its sense without words such as bad, safe or fixed.
"""

import re

from monitorbench.construct.code.parse import names, neutral, parses, renamed, unreserved

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
