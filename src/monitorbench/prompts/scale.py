"""A graded prompt's numbers: which tokens say them, and the score that is their expectation.

A number's probability is that of an answer beginning with it, as a label word's is. Where a tokenizer splits
10, its 1 is the beginning of both: then P(10) = P("1") P("0" behind it), and P(1) is the rest of P("1").
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from monitorbench.prompts.label_logprobs import AROUND, sum_of_logs
from monitorbench.prompts.label_tokens import Encode, behind, word_tokens
from monitorbench.prompts.parse import Score

_TELLS = 0.01
"""Error of a score, for what is not reported, from which on it counts as censored."""


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
    digits = text.strip(AROUND)
    return int(digits) if re.fullmatch("[0-9]|10", digits) else None


def _log_difference(whole: float, part: float) -> float:
    """The logarithm of what is left of a probability when a part of it is taken away; both given as such."""
    if part >= whole:  # equal, but for rounding
        return -math.inf
    return whole + math.log1p(-math.exp(part - whole))
