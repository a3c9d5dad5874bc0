"""Text of other people as it can be shown: nothing in it is hidden, and nothing in it acts.

HTML's own escaping is the template's part. This is for what escaping leaves alone: a terminal's escape
sequences, marks that turn the direction of the text around them, characters that take no room.
"""

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
"""Controls except tab and new line, marks of direction, characters without width (but not the joiners
that many scripts are written with), tags, and lone surrogates, which no file can hold."""


def visible(text: str) -> str:
    """The text with each unseen character named, as in `⟨U+202E⟩`."""
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)
