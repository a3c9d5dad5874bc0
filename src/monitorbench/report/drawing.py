"""A matplotlib figure as SVG markup that can stand in a page among others, in the style that all share.

Promises: it is safe to put in as it is, every name in it an outline or escaped; the same figure gives the
same bytes; text is drawn as outlines, so that it looks the same without the font; no id of one SVG is in
another; nothing in it is loaded from elsewhere; it takes the page's text colour, so that it can be read on
light and on dark. A name is never read as TeX.
"""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import dist
from typing import Any, Literal

import matplotlib
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from monitorbench.report.template import visible

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


INK = "#010203"
"""The colour of text and lines: becomes the page's own text colour."""

MARK_ID = "mark"
"""Prefix of the id of an artist that the figure is about and that has to be in view on any screen."""

_SETTINGS = {
    "svg.fonttype": "path",
    "svg.hashsalt": "monitorbench",
    "text.parse_math": False,
    "text.usetex": False,
    "axes.unicode_minus": True,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
}


def plain(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Draw a faint grid, and no border at the top and on the right."""
    axes.grid(axis=grid, color=INK, alpha=0.12)
    axes.spines[["top", "right"]].set_visible(False)


def legend(figure: Figure, entries: Iterable[tuple[Artist, str]], size: float = 8) -> None:
    """Say below a figure what is drawn in it, each with its name."""
    handles, labels = zip(*entries, strict=True)
    figure.legend(handles, labels, loc="outside lower left", ncols=2, fontsize=size)


def draw(identity: str, label: str, paint: Callable[[], Figure]) -> Markup:
    """Paint a figure and write it as SVG; `identity` prefixes its ids, `label` is read aloud."""
    # From the defaults, so that no matplotlibrc of the machine's changes the bytes.
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **_SETTINGS}):
        text = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        paint().savefig(text, format="svg", metadata=nothing)
    return Markup(_embedded(text.getvalue(), re.sub(r"[^A-Za-z0-9-]", "-", identity), label))


def _embedded(svg: str, prefix: str, label: str) -> str:
    svg = svg[svg.index("<svg") :]
    # Comments hold the text that the outlines draw; the style sheet would reach into the whole page.
    for unwanted in (
        r"<!--.*?-->\s*",
        r"<metadata>.*?</metadata>\s*",
        r"<defs>\s*<style.*?</style>\s*</defs>\s*",
    ):
        svg = re.sub(unwanted, "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = svg.replace(INK, "currentColor")
    label = escape(visible(label))
    attributes = f'role="img" aria-label="{label}" style="stroke-linejoin: round; stroke-linecap: butt"'
    return svg.replace("<svg ", f"<svg {attributes} ", 1)
