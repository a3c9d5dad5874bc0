"""How a recommendation writes numbers and names, in its sentence, its tables and its figures."""

from collections.abc import Callable, Mapping, Sequence

from monitorbench.metrics.choice.facts import Option, Recommendation, Rival
from monitorbench.metrics.written import DASH, MINUS, amount

_CHECKS = {
    "echo": "words echoed from the request",
    "overlap": "overlap with the request",
    "form": "length and layout",
}
"""Shortcut checks whose names are not plain words; they follow "by"."""
RIVALS: Mapping[str, str] = {"nothing": "flagging nothing", "everything": "flagging everything"}


def called(monitor: str | None, prompt: str | None, options: Sequence[Option]) -> str:
    """Name the monitor, with its prompt where it was run with several."""
    several = len({option["prompt"] for option in options if option["monitor"] == monitor}) > 1
    return f"{monitor} ({prompt} prompt)" if several else f"{monitor}"


def best(recommendation: Recommendation) -> str:
    """Name the monitor that the answer is about."""
    return called(recommendation["monitor"], recommendation["prompt"], recommendation["options"])


def spoken(name: str) -> str:
    """Say what a shortcut check goes by, as in a sentence."""
    return _CHECKS.get(name, name.replace("_", " "))


def share(value: float | None, bounds: Sequence[float] | None) -> str:
    """Write a share as `18 % [12–25]`: two digits of the share, whole percents of its interval."""
    if value is None:
        return f"{DASH} %"
    inside = f" [{100 * bounds[0]:.0f}{DASH}{100 * bounds[1]:.0f}]" if bounds else ""
    return f"{float(f'{100 * value:.2g}'):g} %{inside}"


def short(value: float) -> str:
    """Write a number with two digits: `.3`, `.0002`, `12`."""
    text = f"{value:,.0f}" if value >= 10 else f"{float(f'{value:.2g}'):f}".rstrip("0").rstrip(".")
    return text[1:] if text.startswith("0.") else text


def in_1000(value: float | None, bounds: Sequence[float] | None) -> str:
    """Write a number of samples in 1,000 as `2.0 [1.2–3.1]`."""
    if value is None:
        return DASH
    inside = f" [{_few(bounds[0])}{DASH}{_few(bounds[1])}]" if bounds else ""
    return f"{_few(value)}{inside}"


def _few(value: float) -> str:
    """Write a number of samples: `31`, `2.0`, `0.04`."""
    if value >= 9.95:
        return f"{value:,.0f}"
    text = f"{value:.1f}" if value >= 0.095 or value == 0 else f"{float(f'{value:.1g}'):f}".rstrip("0")
    return "0" if value == 0 else text


def signed(value: float) -> str:
    """Write a difference in cost with its sign: `−0.31`."""
    return f"{MINUS if value < 0 else '+' if value > 0 else ''}{amount(abs(value))}"


def signed_amount(value: float | None, bounds: Sequence[float] | None) -> str:
    """Write a difference in cost as `−0.31 [−0.42, −0.20]`."""
    if value is None:
        return DASH
    inside = f" [{signed(bounds[0])}, {signed(bounds[1])}]" if bounds else ""
    return f"{signed(value)}{inside}"


def order_of(recommendation: Recommendation) -> Callable[[Rival], float]:
    """Return the key that orders rivals by how little they are beaten.

    The key is the difference where no monitor is recommended (`none`), else its interval's upper bound.
    """
    return _difference if recommendation["decision"] == "none" else upper_bound


def _difference(rival: Rival) -> float:
    return rival["difference"] if rival["difference"] is not None else float("inf")


def upper_bound(rival: Rival) -> float:
    """Return the upper bound of the difference to a rival; infinity where it has no interval."""
    return rival["difference_ci"][1] if rival["difference_ci"] else float("inf")
