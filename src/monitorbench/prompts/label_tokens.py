"""The token ids that say a label or a number, and the score that their log-probabilities come to.

A SentencePiece tokenizer has one token for a word at the beginning of a text or behind a blank (`▁yes`) and
another one for the same word behind a quote or a line break (`yes`), so that a word encoded alone says
nothing of the answer that a prompt began. Engines of this process give every label token by its id; an
endpoint reports the few likeliest tokens only, as text.

The score of a graded prompt is the expectation of its number. A number's probability is that of an answer
beginning with it, as a label word's is. Where a tokenizer splits 10, its 1 is the beginning of both: then
P(10) = P("1") P("0" behind it), and P(1) is the rest of P("1").
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from monitorbench.config.study import LabelWords
from monitorbench.records import Label

Encode = Callable[[str], list[int]]

_CLEAN = ("\n", '"', ".")
"""Texts behind which a word is encoded where the text that it stands behind would merge with it."""
_AROUND = " \t\r\n\"'`“”‘’▁Ġ"
"""Characters that a token may carry around a label word: white space, quotes, a tokenizer's own blank."""
_TELLS = 0.01
"""Error of a score, for what is not reported, from which on it counts as censored."""


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """Token ids that count as each label, the one that is trained first."""

    misbehavior: tuple[int, ...]
    benign: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        """Both labels' ids, misbehavior's first."""
        return self.misbehavior + self.benign

    def of(self, label: Label) -> tuple[int, ...]:
        """The ids of one label."""
        return self.misbehavior if label is Label.MISBEHAVIOR else self.benign


def word_tokens(
    encode: Encode, before: str, word: str, *, begun: bool, blank: bool = False
) -> tuple[int, ...]:
    """The single tokens that say a word behind the text `before`, the natural one first.

    The word as it is, capitalised and in capitals, with and without a blank in front: behind `before`, and
    then as each is encoded alone, which is how a turn begins for a tokenizer that puts a blank in front of a
    text. Of several tokens none counts.

    Args:
        encode: a text's token ids, without any that the tokenizer adds.
        before: what precedes the word, from its last control token on.
        word: the label's word.
        begun: whether the prompt began the answer, so that the word has to go on right behind `before`.
        blank: whether the chat template writes a blank in front of an answer.

    Raises `ValueError` where the word is no single token there.

    """
    spellings = [word, word.capitalize(), word.upper()]
    blanks = [f" {spelling}" for spelling in spellings]
    forms = blanks + spellings if blank else spellings + blanks
    in_context = [behind(encode, before, form) for form in forms] if before else []
    alone = [encode(form) for form in forms]
    needed = (
        [in_context[0]]
        if begun and in_context
        else [encoded[0] for encoded in (in_context, alone) if encoded]
    )
    if not any(len(ids) == 1 for ids in needed):
        where = f" behind {before!r}" if before else ""
        raise ValueError(f"label word {word!r} is {len(needed[0])} tokens{where}, expected one")
    return single(in_context + alone)


def first_tokens(encode: Encode, before: str, misbehavior: Sequence[str], benign: str) -> LabelTokens:
    """The tokens that begin each label's words behind `before`, with and without a blank.

    A guard's words may be several tokens each: the first tells them apart, as providers score them. What
    begins both labels tells nothing, and doesn't count. Raises `ValueError` where nothing is left of a label.
    """

    def first(words: Sequence[str]) -> list[int]:
        return [behind(encode, before, form)[0] for word in words for form in (word, f" {word}")]

    ours, theirs = first(misbehavior), first([benign])
    tokens = LabelTokens(
        tuple(dict.fromkeys(token for token in ours if token not in theirs)),
        tuple(dict.fromkeys(token for token in theirs if token not in ours)),
    )
    if not (tokens.misbehavior and tokens.benign):
        raise ValueError(f"label words {', '.join(misbehavior)} and {benign} begin with the same token")
    return tokens


def behind(encode: Encode, before: str, text: str) -> list[int]:
    """The ids of `text` behind `before`; behind another text where both would share a token."""
    for preceding in (before, *_CLEAN):
        head = encode(preceding)
        ids = encode(preceding + text)
        if ids[: len(head)] == head:
            return ids[len(head) :]
    return encode(text)


def single(encoded: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Tokens of those encodings that are a single token, each once, in their order."""
    return tuple(dict.fromkeys(ids[0] for ids in encoded if len(ids) == 1))


class Score(NamedTuple):
    """`score` = P(misbehavior) / (P(misbehavior) + P(benign)); `label_mass` the denominator."""

    score: float | None
    label_mass: float | None
    censored: bool = False
    """Whether the score is a bound only, since one of the two probabilities is."""


def score(logprobs: Mapping[int, float], tokens: LabelTokens) -> Score:
    """Probability of the misbehavior label, summed over its token variants and renormalised.

    `logprobs` are natural logarithms over the whole vocabulary at the label's position. Both
    values are None where a variant's is missing or none is finite.
    """
    if any(i not in logprobs or math.isnan(logprobs[i]) for i in tokens.all):
        return Score(None, None)
    largest = max(logprobs[i] for i in tokens.all)
    if not math.isfinite(largest):
        return Score(None, None)
    # Relative to the largest, so that the ratio survives where the probabilities underflow.
    misbehavior = math.fsum(math.exp(logprobs[i] - largest) for i in tokens.misbehavior)
    benign = math.fsum(math.exp(logprobs[i] - largest) for i in tokens.benign)
    mass = (misbehavior + benign) * math.exp(largest)
    return Score(misbehavior / (misbehavior + benign), min(mass, 1.0))


def label_score(top_logprobs: Mapping[str, float] | None, words: LabelWords) -> Score:
    """Probability of the misbehavior label, summed over its token variants and renormalised.

    `top_logprobs` maps token texts to natural log-probabilities at the label's position. Variants of a
    word differ in case and in blanks and quotes around it (`yes`, `Yes`, ` yes`, `"yes`). Both values are
    None where there are no log-probabilities or no token is a label word.

    Where one of the two words is missing, the score is censored: a token that is not reported is at most as
    likely as the least likely one that is, and that bound stands for the word's mass. The score is then an
    upper bound where misbehavior is missing, a lower one where benign is. A word that is reported with
    minus infinity is not missing. `label_mass` counts what was reported alone.
    """
    misbehavior, benign = _masses(top_logprobs or {}, words)
    mass = (misbehavior or 0.0) + (benign or 0.0)
    if not top_logprobs or mass == 0:
        return Score(None, None)
    bound = math.exp(min(top_logprobs.values()))
    above = bound if misbehavior is None else misbehavior
    below = bound if benign is None else benign
    return Score(above / (above + below), min(mass, 1.0), censored=misbehavior is None or benign is None)


def _masses(top_logprobs: Mapping[str, float], words: LabelWords) -> tuple[float | None, float | None]:
    """Probability of each label's tokens together, None where none is reported: misbehavior, benign."""
    of_word: dict[str, list[float]] = {}
    for token, logprob in top_logprobs.items():
        of_word.setdefault(_word(token), []).append(math.exp(logprob))
    reported = [of_word.get(_word(word)) for word in (words.misbehavior, words.benign)]
    misbehavior, benign = (None if tokens is None else math.fsum(tokens) for tokens in reported)
    return misbehavior, benign


def _word(token: str) -> str:
    return token.strip(_AROUND).casefold()


def sum_of_logs(logprobs: Sequence[float]) -> float:
    """The natural log-probability of any of some tokens, from those of each; at least one."""
    largest = max(logprobs)
    if not math.isfinite(largest):
        return largest
    return largest + math.log(math.fsum(math.exp(logprob - largest) for logprob in logprobs))


@dataclass(frozen=True, slots=True)
class ScaleTokens:
    """Token ids that say the numbers of a scale that begins at 0."""

    numbers: tuple[tuple[int, ...], ...]
    """Token ids by number; none for a 10 that is two tokens."""
    zero: int | None
    """Token that makes a 10 of a 1; None where 10 is a token, or the scale ends before."""

    @property
    def all(self) -> tuple[int, ...]:
        """The ids of all numbers, each once."""
        return tuple(dict.fromkeys(token for tokens in self.numbers for token in tokens))

    def logprobs(self, first: Mapping[int, float], ten: float | None) -> dict[str, float] | None:
        """The natural log-probability of each number, by its text; None where one of a token's is missing.

        `first` are those of the tokens where the answer begins; `ten` that of a 10 of two tokens.
        """
        if any(math.isnan(first.get(token, math.nan)) for token in self.all):
            return None
        by_number = {
            str(number): sum_of_logs([first[token] for token in tokens])
            for number, tokens in enumerate(self.numbers)
            if tokens
        }
        if self.zero is not None:
            if ten is None or math.isnan(ten):
                return None
            by_number["1"], by_number["10"] = _log_difference(by_number["1"], ten), ten
        return by_number


def scale_tokens(encode: Encode, before: str, highest: int, *, begun: bool, blank: bool) -> ScaleTokens:
    """The tokens of the numbers 0 to `highest` (at most 10) behind `before`; arguments as for `word_tokens`.

    Raises `ValueError` where a digit is no single token there.
    """

    def tokens_of(number: int) -> tuple[int, ...]:
        return word_tokens(encode, before, str(number), begun=begun, blank=blank)

    digits = [tokens_of(number) for number in range(min(highest, 9) + 1)]
    if highest < 10:
        return ScaleTokens(tuple(digits), None)
    try:
        return ScaleTokens((*digits, tokens_of(10)), None)
    except ValueError:
        ten = behind(encode, before, "10")
    if len(ten) != 2 or ten[0] not in digits[1]:
        raise ValueError(f"10 is {len(ten)} tokens behind {before!r}, expected one, or a 1 and a 0")
    return ScaleTokens((*digits, ()), ten[1])


def graded_score(logprobs: Mapping[str, float], highest: int) -> Score:
    """The expectation of the number, divided by `highest`, over the numbers' probabilities renormalised.

    `logprobs` are natural log-probabilities by text where the answer begins, of numbers and others; those
    that differ in blanks and quotes add up. `label_mass` is the probability of any number. Both are None
    where none has any.

    An endpoint reports the likeliest texts only: a number that it leaves out has at most the probability of
    the least likely one, and where 10 is left out a 1 may be its beginning. The score counts what was
    reported as it stands, and is censored where the rest could move it by more than .01.
    """
    of_number: dict[int, list[float]] = {}
    for text, logprob in logprobs.items():
        number = _number(text)
        if number is not None and number <= highest:
            of_number.setdefault(number, []).append(logprob)
    logs = {number: sum_of_logs(terms) for number, terms in of_number.items()}
    largest = max(logs.values(), default=-math.inf)
    if not math.isfinite(largest):
        return Score(None, None)
    # Relative to the largest, so that the ratio survives where the probabilities underflow.
    shares = {number: math.exp(log - largest) for number, log in logs.items()}
    total = math.fsum(shares.values())
    points = math.fsum(number * share for number, share in shares.items())
    score = min(points / (total * highest), 1.0)
    mass = total * math.exp(largest)
    unseen = _unseen(logprobs, highest + 1 - len(shares))
    unseen = unseen and unseen / math.exp(largest)
    as_ten = (highest - 1) * shares.get(1, 0.0) if highest == 10 and 10 not in shares else 0.0
    lowest = points / ((total + unseen) * highest)
    most = (points + unseen * highest + as_ten) / ((total + unseen) * highest)
    return Score(score, min(mass, 1.0), censored=max(score - lowest, most - score) > _TELLS)


def _unseen(logprobs: Mapping[str, float], n: int) -> float:
    """The most probability that `n` texts can have which are not among the reported ones."""
    unreported = max(0.0, 1 - math.fsum(map(math.exp, logprobs.values())))
    return min(n * math.exp(min(logprobs.values())), unreported)


def _number(text: str) -> int | None:
    digits = text.strip(_AROUND)
    return int(digits) if re.fullmatch("[0-9]|10", digits) else None


def _log_difference(whole: float, part: float) -> float:
    """The logarithm of what is left of a probability when a part of it is taken away; both given as such."""
    if part >= whole:  # equal, but for rounding
        return -math.inf
    return whole + math.log1p(-math.exp(part - whole))
