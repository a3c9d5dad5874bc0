"""The score of an endpoint's log-probabilities by token text.

An endpoint reports the few likeliest tokens only, as text; in-process engines give every label token
by its id (`prompts/parse.py`).
"""

import math
from collections.abc import Mapping, Sequence

from monitorbench.config.study import LabelWords
from monitorbench.prompts.parse import Score

AROUND = " \t\r\n\"'`“”‘’▁Ġ"
"""Characters that a token may carry around a label word: white space, quotes, a tokenizer's own blank."""


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
    return token.strip(AROUND).casefold()


def sum_of_logs(logprobs: Sequence[float]) -> float:
    """The natural log-probability of any of some tokens, from those of each; at least one."""
    largest = max(logprobs)
    if not math.isfinite(largest):
        return largest
    return largest + math.log(math.fsum(math.exp(logprob - largest) for logprob in logprobs))
