"""Features that may give a sample's label away: they see the request too, and nothing of the meaning.

Three families, each a few numbers with a name that can stand in a sentence:

- *echo*: does the answer that the response ends with, or a string quoted in the request, come back; is it
  what somebody in the request claims;
- *overlap*: n-grams that request and response share, the longest run of words, and how much of either stands
  in the other in order;
- *form*: length, refusal openings, code and list marks, and which option is named.

Promises: a feature depends on the sample's two texts alone, and is finite; no regular expression here
backtracks over a hostile text for longer than it takes to read it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from math import log1p
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from monitorbench.corpus.texts import request_text, response_text
from monitorbench.records import Sample

Family = Literal["echo", "overlap", "form"]
FAMILIES: tuple[Family, ...] = ("echo", "overlap", "form")
SIZES = ("characters", "lines")
"""The features of form that are length."""

_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_OPTION_LINE = re.compile(r"^[ \t]*\(?[A-J][).:][ \t]")
_LETTER = re.compile(
    r"\(([A-J])\)|\b([A-J])\)|(?i:\b(?:answer|option|choice)\b[^A-Z\n]{0,12})([A-J])\b(?!['’])"
)
_STATED = re.compile(
    r"\\boxed\{([^{}\n]{1,60})\}|####[ \t]*([^\n]{1,60})"
    r"|(?i:\b(?:answer|result)\b[*_ \t]*(?::|=|\bis\b))[*_ \t:]*([^\n]{1,60})"
)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_QUOTED = re.compile(r"[\"“`]([^\"“”`\n]{1,80})[\"”`]")
_CLAIM = re.compile(
    r"\b(?:i|he|she|they|we|you|teacher|professor|expert|key|solution|colleague|friend|boss|doctor|consensus)\b"
    r"[^\n]{0,60}\b(?:think|thinks|thought|believe|believes|say|says|said|sure|guess|suggests?|convinced|got|"
    r"get|answer|told|claims?|chose|picked|leaning|expects?|lists?)\b"
    r"|\b(?:answer|key|solution|result)\b[^\n]{0,30}\b(?:is|was|reads|has|should|must|lists)\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\W*(?:i['’]?m (?:really |very |so )?(?:sorry|afraid|unable|not able)|sorry|i (?:can(?:no|['’])?t|cannot"
    r"|won['’]?t|will not|do(?:n['’]t| not) (?:feel|think|want)|must (?:decline|refuse)|apologi[sz]e)"
    r"|as an? (?:ai|language|responsible)|no[,.]|unfortunately)",
    re.IGNORECASE,
)
_SORRY = re.compile(r"\b(?:sorry|cannot|can['’]t|unable|illegal|unethical|inappropriate)\b", re.IGNORECASE)
_HEDGE = re.compile(r"\b(?:however|but|although|instead|actually|note that|wait)\b", re.IGNORECASE)
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?:#|//|/\*|\*)", re.MULTILINE)
_BRANCH = re.compile(r"\b(?:if|elif|else|case|switch)\b")
_LOOP = re.compile(r"\b(?:for|while)\b")
_RAISED = re.compile(r"\b(?:try|except|catch|raise|throw|assert)\b")
_MOST_CHARACTERS = 60_000
"""Longer texts are cut here: what gives a label away stands in less."""
_MOST_QUOTED = 100
_MOST_WORDS = 1000
"""Words of either text that are compared in order."""
_LONGEST_RUN = 128


def features(sample: Sample) -> dict[Family, dict[str, float]]:
    """The named numbers of each family; the names are the same for every sample."""
    request = request_text(sample)[:_MOST_CHARACTERS]
    response = response_text(sample)[:_MOST_CHARACTERS]
    return _features(request, response)


@cache
def feature_names(family: Family) -> tuple[str, ...]:
    """The names of a family's features, in the order of their values."""
    return tuple(_features("", "")[family])


_MOST_KNOWN = 10_000
_known: dict[bytes, NDArray[np.float64]] = {}
"""Values that were worked out in this process, by texts: a table and a recommendation of one dataset see the
same samples several times."""


def feature_values(sample: Sample) -> NDArray[np.float64]:
    """The values of `features` [features], family by family, worked out once for each pair of texts."""
    counted = "".join(f"{len(text)} {text}" for text in (request_text(sample), response_text(sample)))
    key = blake2b(counted.encode("utf-8", "surrogatepass")).digest()
    if key not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        values = [value for family in features(sample).values() for value in family.values()]
        _known[key] = np.array(values, dtype=np.float64)
    return _known[key]


def final_answer(response: str) -> str | None:
    """Return a response's final answer as it would stand in the request; None where it states nothing.

    An option's letter where one is named, else what follows the last `answer is`, `####` or `\\boxed`, else
    the last number, else the whole of a short response.
    """
    if letters := list(_LETTER.finditer(response)):
        return next(group for group in letters[-1].groups() if group)
    if stated := list(_STATED.finditer(response)):
        answer = next(group for group in stated[-1].groups() if group).strip(" *_.$")
        number = _NUMBER.search(answer)
        return (number.group().rstrip(",") if number else answer) or None
    if numbers := _NUMBER.findall(response):
        return str(numbers[-1]).rstrip(",")
    short = response.strip().strip(".!\"'")
    return short if 0 < len(short.split()) <= 8 else None


def _echo(request: str, response: str, answer: str | None) -> dict[str, float]:
    lines = request.splitlines()
    free = "\n".join(line for line in lines if not _OPTION_LINE.match(line))
    claims = "\n".join(s.group() for s in _SENTENCE.finditer(free) if _CLAIM.search(s.group()))
    in_request = _occurrences(answer, request)
    rivals = _rivals(answer, free)
    folded = response.casefold()
    quoted = [q.strip().casefold() for q in _QUOTED.findall(request)[:_MOST_QUOTED]]
    n_quoted = max(1, len(quoted))
    return {
        "times its final answer stands in the request": log1p(in_request),
        "times its final answer stands outside the options": log1p(_occurrences(answer, free)),
        "its final answer is what somebody claims": float(_occurrences(answer, claims) > 0),
        "its final answer is the most mentioned of its kind": float(
            answer in rivals and rivals[answer] == max(rivals.values())
        ),
        "its final answer is the last of its kind in the request": float(
            answer in rivals and answer == list(rivals)[-1]
        ),
        "share of quoted strings that come back": sum(q in folded for q in quoted) / n_quoted,
        "begins with a quoted string": float(any(folded.lstrip(" \"'*").startswith(q) for q in quoted if q)),
    }


def _occurrences(answer: str | None, text: str) -> int:
    """How often an answer stands in a text as words of its own."""
    if not answer:
        return 0
    # A letter counts as a letter ("the answer is B"), not as the article "a".
    is_folded = len(answer) > 1
    if answer.isascii() and text.isascii():  # an expression takes longer to compile than most texts to read
        is_inside = answer.lower() in text.lower() if is_folded else answer in text
        if not is_inside:
            return 0
    flags = re.IGNORECASE if is_folded else 0
    return len(re.findall(rf"(?<![\w.]){re.escape(answer)}(?!\w)", text, flags))


def _rivals(answer: str | None, text: str) -> dict[str, int]:
    """How often each letter (or number) stands in a text, in the order of their last occurrence."""
    if answer is None:
        return {}
    kind = r"\b[A-J]\b(?!['’])" if re.fullmatch("[A-J]", answer) else r"\d[\d,]*(?:\.\d+)?"
    mentions = re.findall(kind, text)
    counted, order = Counter(mentions), {name: i for i, name in enumerate(mentions)}
    return {name: counted[name] for name in sorted(counted, key=lambda name: order[name])}


def _overlap(request: str, response: str) -> dict[str, float]:
    request_words = [word.casefold() for word in _WORD.findall(request)]
    response_words = [word.casefold() for word in _WORD.findall(response)]
    by_feature = {}
    for n in (1, 2, 3, 5):
        a, b = _grams(request_words, n), _grams(response_words, n)
        shared = len(a & b)
        by_feature[f"share of its {n}-grams that stand in the request"] = shared / max(1, len(b))
        by_feature[f"share of the request's {n}-grams that it holds"] = shared / max(1, len(a))
    longest = _longest_shared(request_words[: 4 * _MOST_WORDS], response_words[: 4 * _MOST_WORDS])
    last = response.strip().rsplit("\n", 1)[-1]
    end = _grams([word.casefold() for word in _WORD.findall(last)], 2)
    by_feature["longest run of words that stands in the request"] = log1p(longest)
    by_feature["longest such run as a share of it"] = longest / max(1, len(response_words))
    by_feature["share of its last line that stands in the request"] = len(
        end & _grams(request_words, 2)
    ) / max(1, len(end))
    request_words, response_words = request_words[:_MOST_WORDS], response_words[:_MOST_WORDS]
    common = in_order(request_words, response_words)
    by_feature["edit similarity of it and the request"] = (
        2 * common / max(1, len(request_words) + len(response_words))
    )
    by_feature["share of it that stands in the request in order"] = common / max(1, len(response_words))
    return by_feature


def _grams(words: Sequence[str], n: int) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def _longest_shared(one: Sequence[str], two: Sequence[str]) -> int:
    """Words in the longest run that stands in both, by bisection: a run holds every shorter one."""
    low, high = 0, min(len(one), len(two), _LONGEST_RUN)
    while low < high:
        middle = (low + high + 1) // 2
        if _grams(one, middle) & _grams(two, middle):
            low = middle
        else:
            high = middle - 1
    return low


def in_order(one: Sequence[str], two: Sequence[str]) -> int:
    """Length of the longest common subsequence: what insertions and deletions alone would leave.

    A row of the table is the bits of one number (Hyyrö 2004, "Bit-parallel LCS-length computation
    revisited"), so that a thousand words beside a thousand take a millisecond.
    """
    places: dict[str, int] = {}
    for i, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << i
    full = (1 << len(one)) - 1
    row = full
    for word in two:
        if here := row & places.get(word, 0):
            row = (row + here | row - here) & full
    return len(one) - row.bit_count()


def _form(response: str, answer: str | None) -> dict[str, float]:
    words = response.split()
    letters = max(1, sum(c.isalpha() for c in response))
    return {
        "characters": log1p(len(response)),
        "lines": log1p(response.count("\n")),
        "words a sentence": len(words) / max(1, len(re.findall(r"[.!?]", response))),
        "letters a word": letters / max(1, len(words)),
        "opens with a refusal": float(_REFUSAL.match(response) is not None),
        "words of refusal": log1p(len(_SORRY.findall(response))),
        "words of contrast": log1p(len(_HEDGE.findall(response))),
        "opens with yes": float(response[:4].lower().startswith("yes")),
        "question marks": log1p(response.count("?")),
        "exclamation marks": log1p(response.count("!")),
        "code fences": log1p(response.count("```")),
        "list items": log1p(len(_LIST_ITEM.findall(response))),
        "comment lines": log1p(len(_COMMENT.findall(response))),
        "branches": log1p(len(_BRANCH.findall(response))),
        "loops": log1p(len(_LOOP.findall(response))),
        "words of exceptions": log1p(len(_RAISED.findall(response))),
        "equals signs": log1p(response.count("=")),
        "quotation marks": log1p(response.count('"') + response.count("“")),
        "brackets": log1p(sum(response.count(c) for c in "([{")),
        "share of digits": sum(c.isdigit() for c in response) / max(1, len(response)),
        "share of capitals": sum(c.isupper() for c in response) / letters,
        "ends in a number": float(response.rstrip(" .*)\n}")[-1:].isdigit()),
        "states a final answer": float(answer is not None),
        **{f"names option {letter}": float(answer == letter) for letter in "ABCDE"},
    }


def _features(request: str, response: str) -> dict[Family, dict[str, float]]:
    answer = final_answer(response)
    return {
        "echo": _echo(request, response, answer),
        "overlap": _overlap(request, response),
        "form": _form(response, answer),
    }
