"""How numbers are written, the same in the terminal, the page and the figures.

Rates and AUROCs lie in [0, 1] and take three characters, `.36`, just below 1 four: `.996`. What is undefined
is a dash.
"""

from collections.abc import Sequence
from enum import StrEnum

from monitorbench.metrics.registry import BY_NAME
from monitorbench.metrics.table import Number

DASH = "–"
MINUS = "−"
TO_ASCII = str.maketrans(
    {DASH: "-", MINUS: "-", "·": "|", "…": ".", "≤": "<=", "†": "+", "Δ": "d", "→": ">", "×": "x"}
)
"""For a terminal that can't show more than ASCII; the width stays the same, but of ≤, which no column has."""

_ROUNDING = 1e-9
"""A bound this close to 0 is 0: the rest is floating point."""


def rate(value: float | None) -> str:
    """A number in [0, 1] to two decimals; to three just below 1, since only what is 1 is written so."""
    if value is None:
        return DASH
    text = f"{value:.{3 if 0.995 <= value < 0.9995 else 2}f}"
    return text[1:] if text.startswith("0") else text[:3]


def count(number: int) -> str:
    """A whole number in at most five characters: `99999`, `250k`, `3.0M`."""
    if number < 100_000:
        return str(number)
    return f"{number / 1e3:.0f}k" if number < 999_500 else f"{number / 1e6:.1f}M"


def counted(number: int, what: str) -> str:
    """`1 step`, `1,050 steps`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def interval(bounds: Sequence[float] | None) -> str:
    """`[.25–.48]`; empty where there is none."""
    return f"[{rate(bounds[0])}{DASH}{rate(bounds[1])}]" if bounds else ""


def rate_with_interval(value: float | None, bounds: Sequence[float] | None) -> str:
    """`.36 [.25–.48]`: 13 characters; just below 1 up to 16."""
    return f"{rate(value)} {interval(bounds)}".rstrip()


def signed(value: float | None) -> str:
    """A difference in [-1, 1] with its sign."""
    if value is None:
        return DASH
    sign = MINUS if round(value, 2) < 0 else "+" if round(value, 2) > 0 else ""
    return sign + rate(abs(value))


def signed_interval(bounds: Sequence[float] | None) -> str:
    """`[−.03, +.07]`; empty where there is none."""
    return f"[{signed(bounds[0])}, {signed(bounds[1])}]" if bounds else ""


def signed_with_interval(value: float | None, bounds: Sequence[float] | None) -> str:
    """`+.02 [−.03, +.07]`: at most 17 characters."""
    return f"{signed(value)} {signed_interval(bounds)}".rstrip()


def p_value(value: float | None) -> str:
    """`p = .012`, to three decimals; `p < .001` below that."""
    if value is None:
        return f"p {DASH}"
    if value < 0.001:
        return "p < .001"
    return f"p = {f'{value:.3f}'.removeprefix('0')}"


def amount(value: float | None) -> str:
    """A cost of at least 0, to two decimals, two digits or whole units."""
    if value is None:
        return DASH
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def amount_interval(bounds: Sequence[float] | None) -> str:
    """`[0.41–0.55]`; empty where there is none."""
    return f"[{amount(bounds[0])}{DASH}{amount(bounds[1])}]" if bounds else ""


def value_of(number: Number) -> str:
    """A number without its interval, as its metric is written."""
    match BY_NAME[number.metric].form:
        case "count":
            return count(number.whole)
        case "cost":
            return amount(number.value)
        case "difference":
            return signed(number.value)
        case "p":
            return p_value(number.value)
        case _:
            return rate(number.value)


def interval_of(number: Number) -> str:
    """A number's interval; empty where there is none."""
    ways = {"cost": amount_interval, "difference": signed_interval}
    return ways.get(BY_NAME[number.metric].form, interval)(number.interval)


def shown(number: Number) -> str:
    """A number with its interval: `.36 [.25–.48]`."""
    return f"{value_of(number)} {interval_of(number)}".rstrip()


class Finding(StrEnum):
    """The conclusion from a difference and its interval."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference found"
    UNKNOWN = "cannot be told"


def finding(bounds: Sequence[float] | None) -> Finding:
    """Judge an AUROC difference by its interval: better or worse only where it excludes 0."""
    if not bounds:
        return Finding.UNKNOWN
    if bounds[0] > _ROUNDING:
        return Finding.BETTER
    return Finding.WORSE if bounds[1] < -_ROUNDING else Finding.NO_DIFFERENCE
