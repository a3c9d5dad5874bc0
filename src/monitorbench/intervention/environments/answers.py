"""When a written answer is right: HotPotQA's exact match and F1, and numbers compared as numbers.

Normalisation and F1 are those of HotPotQA's own evaluation (Yang et al. 2018, arXiv:1809.09600, after
SQuAD): lower case, no punctuation, no articles; `yes`, `no` and `noanswer` have no partial credit.
"""

import re
import string
from collections import Counter
from fractions import Fraction

from monitorbench.intervention.environments.calculator import calculate

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = ("yes", "no", "noanswer")
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:/\d+)?")


def normalised(answer: str) -> str:
    """An answer without what two people may write differently."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(given: str, expected: str) -> bool:
    """Whether both are the same after normalisation."""
    return normalised(given) == normalised(expected)


def token_f1(given: str, expected: str) -> float:
    """F1 in [0, 1] of the given answer's words against the expected one's, as multisets."""
    a, b = normalised(given), normalised(expected)
    if a != b and (a in _CLOSED or b in _CLOSED):
        return 0.0
    words_a, words_b = a.split(), b.split()
    common = (Counter(words_a) & Counter(words_b)).total()
    # F1 = 2PR / (P + R) with P = common / |a| and R = common / |b|
    return 2 * common / (len(words_a) + len(words_b)) if common else 0.0


def is_number(given: str, expected: Fraction) -> bool:
    """Whether the answer states one number, the expected one: `$1,250.00` is 1250, `3 or 4` is none."""
    numbers = _NUMBER.findall(given)
    try:
        return len(numbers) == 1 and calculate(numbers[0]) == expected
    except ValueError:
        return False
