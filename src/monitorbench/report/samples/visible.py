"""Text of other people as it can be shown: nothing in it is hidden, and nothing in it acts.

HTML's own escaping is the template's part. This is for what escaping leaves alone: a terminal's escape
sequences, marks that turn the direction of the text around them, characters that take no room.
"""

import re

from monitorbench.prompts.lookalikes import INVISIBLE

_JOINED = "\u0600-\u18af\ua800-\uabff\U00010a00-\U00011fff\ufe0f\u2600-\u27bf\U0001f000-\U0001faff"
"""Letters of the scripts that are written with joiners, and pictures that are put together with them."""

_UNSEEN = re.compile(
    f"(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}])|([\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{INVISIBLE}])"
)
"""Controls except tab and new line, what is invisible (but for the joiners of many scripts, between their
letters), and lone surrogates, which no file can hold."""


def visible(text: str) -> str:
    """The text with each unseen character named, as in `⟨U+202E⟩`."""
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[1]):04X}⟩" if match[1] else match[0], text)
