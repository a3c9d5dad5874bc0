"""A matplotlib figure as an SVG string that can stand in a page among others.

Promises: the same figure gives the same bytes; text is drawn as outlines, so that it looks the same
without the font; no id of one SVG is in another; nothing in it is loaded from elsewhere; it takes the
page's text colour, so that it can be read on light and on dark. A name is never read as TeX.
"""

import io
import re
from collections.abc import Callable
from html import escape

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from monitorbench.report.samples.visible import visible

INK = "#010203"
"""The colour of text and lines: becomes the page's own text colour."""

_SAID = "\n"
"""Separator of a link's address, where it can't stand, and its name, until both are written."""
_LINK = re.compile('<a xlink:href="([^"\n]*?)(?:\n|&#10;)([^"]*?)" target="_blank"')

MARK = "mark"
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


def linked(patch: Patch, address: str, said: str) -> Patch:
    """The patch as an unseen link over what it covers; `said` is read aloud. Only for `draw`."""
    patch.set(url=f"{address}{_SAID}{said}", facecolor="#ffffff", linewidth=0, alpha=0)
    return patch


def draw(identity: str, label: str, paint: Callable[[], Figure]) -> str:
    """Paint a figure and write it as SVG; `identity` prefixes its ids, `label` is read aloud."""
    # From the defaults, so that no matplotlibrc of the machine's changes the bytes.
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **_SETTINGS}):
        text = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        paint().savefig(text, format="svg", metadata=nothing)
    return _embedded(text.getvalue(), re.sub(r"[^A-Za-z0-9-]", "-", identity), label)


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
    svg, n_links = _LINK.subn(r'<a href="\1" aria-label="\2"', svg)
    # What is an image to a screen reader has no links in it.
    role = "group" if n_links else "img"
    attributes = f'role="{role}" aria-label="{label}" style="stroke-linejoin: round; stroke-linecap: butt"'
    return svg.replace("<svg ", f"<svg {attributes} ", 1)
