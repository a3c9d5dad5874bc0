"""Style that all figures share: colours, markers, lines, and how a name is written in them."""

from collections.abc import Sequence
from math import dist
from typing import Any

from monitorbench.report.samples.visible import visible

COLOURS = ("#7c8594", "#d97706", "#0284c7", "#059669", "#db2777", "#7c3aed", "#ca8a04", "#dc2626")
"""Readable on white and on near-black; told apart with common colour blindness, in this order."""
CHOICES = (*(COLOURS[i] for i in (3, 2, 1, 4, 5)), COLOURS[7])
"""Colours of the monitors that were chosen from, the recommended one first."""
MARKERS = ("o", "D", "^", "v", "P", "X")
LINES = ("-", "--", ":", "-.")
_NEAR = 0.02
"""Share of an axis within which two markers cover each other."""


def colour(i: int) -> str:
    """The colour of the i-th monitor; they come round again."""
    return COLOURS[i % len(COLOURS)]


def numbers(names: Sequence[str]) -> dict[str, str]:
    """A number for each name where there are more of them than colours, else nothing."""
    return {name: str(i + 1) if len(names) > len(COLOURS) else "" for i, name in enumerate(names)}


def ink_on(red: float, green: float, blue: float) -> str:
    """Near-black or white, whichever can be read on a colour with parts in [0, 1]."""
    # Relative luminance (WCAG 2.2), with sRGB taken as a power of 2.2.
    bright = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.22
    return "#111111" if bright else "#ffffff"


def shortened(name: str, most: int) -> str:
    """A name of at most `most` characters, its middle left out."""
    name, half = visible(name), most // 2
    return name if len(name) <= most else f"{name[: half - 1]}…{name[len(name) - half :]}"


class Dots:
    """Markers of a figure, none of which is hidden: one that would lie on an earlier one is a ring around it.

    `width` and `height` are the ends of both axes, which start near 0.
    """

    def __init__(self, width: float = 1.0, height: float = 1.0) -> None:
        self._width, self._height = width, height
        self._placed: list[tuple[float, float]] = []

    def marker(self, x: float, y: float, shade: str) -> dict[str, Any]:
        """Place a marker, and return how matplotlib draws it."""
        point = (x / self._width, y / self._height)
        n_below = sum(dist(point, placed) < _NEAR for placed in self._placed)
        self._placed.append(point)
        return {"color": shade, "mfc": "none" if n_below else shade, "ms": 7 + 5 * n_below, "mew": 1.4}
