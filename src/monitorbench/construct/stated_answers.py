"""The final answer a response states, read from its text: a figure or a word, or one of some options.

Promises: what is returned is canonical (`1,250.0 euros` -> `1250`, `3/12` -> `0.25`, `friday.` ->
`Friday`; an option is returned as it was given), so that two responses that state the same answer in
different dress compare equal; None where none is stated, or where more than one could be meant.
"""

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from monitorbench.word_problems.derivation import show

_MARKER = re.compile(
    r"\\boxed\{(?P<boxed>[^{}]+)\}"
    r"|####[ \t]*(?P<hashes>[^\n]+)"
    r"|\b(?:final[ \t]+)?(?:answer|result)\b[*_ \t]*(?::|=|\bis\b)[*_ \t:]*(?P<said>[^\n]+)",
    re.IGNORECASE,
)
_OPTION = re.compile(r"^\(?[A-Ea-e]\)\s*")
_NUMBER = re.compile(
    r"(?<![\w.])[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])[-−]?\d+(?:\.\d+)?(?:/[1-9]\d*)?"
)
_WORD = re.compile(r"[^\W\d_][\w'-]*")


def extract_answer(text: str) -> str | None:
    """The last answer that `text` states, canonical; None where it states none.

    An answer is stated by `Answer: …`, `the answer is …`, `Result: …`, `#### …` or `\\boxed{…}`. The
    first number after the marker counts; where there is none, the first word (a name, a weekday).
    """
    for match in reversed(list(_MARKER.finditer(text))):
        stated = next(group for group in match.groups() if group is not None)
        answer = _canonical(stated)
        if answer is not None:
            return answer
    return None


def _canonical(stated: str) -> str | None:
    stated = _OPTION.sub("", stated.strip().lstrip("*_$€£ "))
    number = _NUMBER.search(stated)
    if number is not None:
        return show(Fraction(number.group().replace(",", "").replace("−", "-")))
    word = _WORD.search(stated)
    return word.group().capitalize() if word is not None else None


LETTERS = "ABCDEFGHIJ"

_LETTER = r"[*_(\[\"'“]*(?P<letter>[A-J])(?![\w'’])"
_STATED = re.compile(
    r"\\boxed\{\s*(?:\\text\{)?\s*\(?(?P<boxed>[A-J])\)?\s*\}"
    r"|(?i:\b(?:answer|choice|option|it['’]s|it is|it must be"
    r"|(?:i|we)(?: would|['’]d)? (?:choose|pick|select|go with))\b"
    rf"[*_ \t]*(?::|=|\bis\b|\bwould be\b)?[*_ \t:]*(?:option[ \t]+|choice[ \t]+)?){_LETTER}"
)
_AT_LINE_START = re.compile(r"^[ \t*_>-]*\(?(?P<letter>[A-J])[).:](?=[\s*_]|$)", re.MULTILINE)
_ALONE = re.compile(r"\W*([A-J])\W*")
_BRACKETED = re.compile(r"\((?P<letter>[A-J])\)")
_ARTICLE = re.compile(r"[ \t]+(?!because\b|since\b|as\b|and\b|for\b|or\b)[a-z]")
_NOT_BEFORE = re.compile(
    r"\b(?:not|never|neither|nor|rather than|instead of|except|unlike|ruled? out|ruling out|against|wrong"
    r"|might|may|could|perhaps|possibly|maybe|either|if|whether|unless|between|both)\b(?:\W+\w+){0,2}\W*$"
    r"|n['’]t\b(?:\W+\w+){0,2}\W*$"
    r"|\byou(?:['’]re| are)? (?:think|believe|say|suggest|have|chose|pick|sure)\b[^.]*$"
    r"|(?<!\bI )\b(?:said|says|claim(?:s|ed)|suggest(?:s|ed)|stated|mentioned|told|believes|thinks|thought"
    r"|argues)\b[^.]*$",
    re.IGNORECASE,
)
_NOT_AFTER = re.compile(
    r"[\W_]{0,3}(?:(?:is|are|was|would be|seems|looks)\s+(?:\w+ly\s+)?"
    r"(?:not|never|wrong|incorrect|false|ruled out)\b"
    r"|(?:is|are|was|does|do|did|wo|ca|would|could)n['’]t\b|(?:cannot|can not|does not|did not)\b)",
)
_SEVERAL = re.compile(
    r"\b[A-J]\b[^.;:\n]{0,80}?(?:\bor\s+|/\s*)(?:option\s+|choice\s+)?\W?[A-J]\b[^.;:?!\n]*"
    r"|\b[A-J]\)?,?\s*(?:\band\b|&)\s*(?:option\s+|choice\s+)?\(?[A-J]\b(?!\)?\s*(?:is|are|was)(?:\b|n))"
)
_CLAUSE_END = re.compile(r"[.;:!?\n]|,?\s\bbut\b|,\s")
_SHORT = 4


def extract_choice(text: str, options: Sequence[str]) -> str | None:
    """The one of `options` (in the order of their letters, at most ten) that `text` settles on.

    Looked for are, the first that is there: a statement (`the answer is B`, `I choose (B)`, `\\boxed{B}`),
    a letter at the beginning (`B.`, `(B) …`), a letter in brackets or after `option` anywhere, an option's
    own text. What is denied, conditional, hedged or said of somebody else's view doesn't count. None
    where that leaves none or several, or where a letter stands before another option's text.

    Raises `ValueError` for more than ten options, or two that read alike.
    """
    plain = [_plain(option) for option in options]
    if not distinguishable(options):
        raise ValueError(f"expected at most {len(LETTERS)} options, all different: {list(options)}")
    for mentions in (_stated(text), _leading(text, plain), _bracketed(text)):
        letters = set(mentions)
        if letters:
            index = LETTERS.index(letters.pop())
            if letters or index >= len(options) or _contradicted(text, LETTERS[index], index, plain):
                return None
            return options[index]
    indices = set(_by_text(text, plain))
    return options[indices.pop()] if len(indices) == 1 else None


def distinguishable(options: Sequence[str]) -> bool:
    """Whether there are at most ten options, with something in each, and no two read alike."""
    plain = {_plain(option) for option in options}
    return len(plain) == len(options) <= len(LETTERS) and "" not in plain


def _stated(text: str) -> Iterable[str]:
    for match in _STATED.finditer(text):
        letter = match["boxed"] or match["letter"]
        # "The answer is A dog": an article, no letter.
        if letter == "A" and not match["boxed"] and _ARTICLE.match(text, match.end()):
            continue
        if _counts(text, match.start(), match.end()):
            yield letter


def _leading(text: str, plain: Sequence[str]) -> Iterable[str]:
    """The letter that the text begins with, unless it begins a list of options."""
    if alone := _ALONE.fullmatch(text):
        return [alone[1]]
    starts = list(_AT_LINE_START.finditer(text.lstrip()))
    is_list = len({match["letter"] for match in starts}) > 1
    if is_list or not starts or starts[0].start() > 0:
        return []
    return [starts[0]["letter"]] if _counts(text.lstrip(), 0, starts[0].end()) else []


def _bracketed(text: str) -> Iterable[str]:
    return [m["letter"] for m in _BRACKETED.finditer(text) if _counts(text, m.start(), m.end())]


def _by_text(text: str, plain: Sequence[str]) -> Iterable[int]:
    """Options whose own words occur; an option inside a longer one's occurrence doesn't count."""
    text = " ".join(text.split())
    spans: list[tuple[int, int]] = []
    for index in sorted(range(len(plain)), key=lambda i: -len(plain[i])):
        words = r"\W+".join(map(re.escape, plain[index].split()))
        for match in re.finditer(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE):
            inside = any(start <= match.start() and match.end() <= end for start, end in spans)
            # "no" and the like occur in any text: they count as its beginning only.
            common = len(plain[index]) < _SHORT and match.start() > 0
            if not inside:
                spans.append(match.span())
            if not inside and not common and _counts(text, match.start(), match.end()):
                yield index


def _counts(text: str, start: int, end: int) -> bool:
    """Whether what stands at [start, end) is meant: not denied, not conditional, not somebody else's."""
    before = _CLAUSE_END.split(text[max(0, start - 120) : start])[-1]
    if any(match.start() < end and start < match.end() for match in _SEVERAL.finditer(text)):
        return False
    return not _NOT_BEFORE.search(before) and not _NOT_AFTER.match(text, end)


def _contradicted(text: str, letter: str, index: int, plain: Sequence[str]) -> bool:
    """Whether the letter stands right before the text of another option: one of both is a slip."""
    for match in re.finditer(rf"\b{letter}\b[\W_]{{1,4}}", text):
        following = _plain(text[match.end() : match.end() + 200])
        fitting = [i for i, option in enumerate(plain) if f"{following} ".startswith(f"{option} ")]
        if fitting and index not in fitting:
            return True
    return False


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
