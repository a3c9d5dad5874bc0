"""What all figures share: colours, markers, lines, and how a name is written in them."""

from collections.abc import Sequence

from monitorbench.report.samples.visible import visible

COLOURS = ("#7c8594", "#d97706", "#0284c7", "#059669", "#db2777", "#7c3aed", "#ca8a04", "#dc2626")
"""Readable on white and on near-black; told apart with common colour blindness, in this order."""
MARKERS = ("o", "D", "^", "v", "P", "X")
LINES = ("-", "--", ":", "-.")


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
