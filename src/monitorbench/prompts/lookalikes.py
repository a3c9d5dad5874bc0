"""Text as it looks: every letter and bracket that can pass for a Latin one, as that one.

So a tag of ours is found in judged text however it is spelled: in Cyrillic, fullwidth or accented
letters, in capitals, or with characters between its letters that nobody sees.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import NamedTuple

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Characters that show nothing, as ranges of a regular expression's class: Unicode's
Default_Ignorable_Code_Point, the blank braille pattern and the marks of interlinear notes."""

_LIKE = {
    "a": "ɑΑαАаᎪᗅ⍺ꓮ𐊠𖽀",
    "e": "ΕεЕеҽᎬ℮⋿ⴹꓰꬲ𐊆𑢦𑢮",
    "f": "Ϝքᖴẝꓝꬵ𐊇𐊥𐔥𑢢𑣂𝈓",
    "l": "ıƖǀɩΙιІіӀӏ۱ᎥᏞᒪᛁ∣⍳⏽ⲒⳐⵏꓡꓲꙇꭵ𐊊𐌉𐌠𐐛𐔦𑢣𑢲𑣃𖼖𖼨𝈪",
    "m": "ΜϺМмᎷᗰᛖⲘꓟ𐊰𐌑",
    "n": "ΝηոռпⲚꓠ𐔓",
    "o": "ΟοσОоՕօ۵०০੦૦ଠ୦௦ం౦ಂ೦ംഠ൦ං๐໐ဝ၀ჿዐᴑⲞⲟⵔ〇ꓳꬽ𐊒𐊫𐐄𐐬𐓂𐓪𐔖𑓐𑢵𑣈𑣗𑣠",
    "p": "ΡρРрᏢᑭ⍴Ⲣⲣꓑ𐊕",
    "q": "ԛգզⵕ",
    "r": "ƦгᎡᏒᖇᴦⲅꓣꭇꭈꮁ𐒴𖼵𝈖",
    "s": "ƽЅѕՏᏕᏚꓢꮪ𐊖𐐠𐑈𑣁𖼺",
    "t": "ΤτТтᎢ⊤⟙Ⲧꓔ𐊗𐊱𐌕𑢼𖼊🝨",
    "u": "ʋυμиՍսሀᑌ∪⋃ꓴꞟ𐓎𐓶𑢸𑣘𖽂",
    "x": "×ΧχХхᕁᕽ᙭᙮ᚷ╳⤫⤬⨯ⲬⵝꓫꞳ𐊐𐊴𐌗𐌢𐔧𑣬",
    "y": "ɣΥγУуҮүყᎩᎽᶌⲨꓬ𐊲𑢤𑣜𖽃",
    "<": "˂ᐸᚲ‹❮❬❰〈⟨≺𝈶",
    ">": "˃ᐳ›❯❭❱〉⟩≻𖼿𝈷",
    "/": "᜵⁁⁄∕╱⟋⧸Ⳇ〳ノ㇓丿𝈺",
    "[": "【〔⁅⟦〚❲",
}
"""Characters that pass for the letters of our tags or the marks around them: Unicode's confusables.txt
(UTS 39), as far as neither compatibility decomposition nor a character's name says it; added by hand
are ε η μ τ χ, м п т и and the brackets of other scripts and of mathematics."""

OPENING = "<[＜﹤［" + _LIKE["<"] + _LIKE["["]
"""Every character that folds to the bracket that opens a tag."""

_LATIN = {character: letter for letter, characters in _LIKE.items() for character in characters}
_NAMED = re.compile(
    r"(?:LATIN|REGIONAL INDICATOR SYMBOL)(?: \w+)* LETTER (?:SMALL CAPITAL )?([A-Z])(?: WITH .*)?"
)
"""A letter's name in Unicode: `LATIN SMALL LETTER O WITH STROKE`, `LATIN LETTER SMALL CAPITAL E`."""
_UNSEEN = re.compile(f"[{INVISIBLE}]")
_PLAIN = re.compile(r"[\s -~]*")


class Folded(NamedTuple):
    """Folded text; the original's character i became the folded one's from `starts[i]` on."""

    text: str
    starts: list[int]

    def first(self, place: int) -> int:
        """Start in the original of what became `place`, unseen characters before it included."""
        return bisect_left(self.starts, place)

    def character(self, place: int) -> int:
        """Index in the original of the character that became the one at `place`."""
        return bisect_right(self.starts, place) - 1


class _Table(dict[int, str]):
    """Map of a code point to what it looks like, worked out when first met."""

    def __missing__(self, code: int) -> str:
        self[code] = lookalike = _looks_like(chr(code))
        return lookalike


_TABLE = _Table()


def is_plain(text: str) -> bool:
    """Whether all of the text is what it looks like: printable ASCII and white space."""
    return text.isascii() and _PLAIN.fullmatch(text) is not None


def looks(text: str) -> str:
    """The text in lower-case Latin letters as far as it looks like them, without what is not seen.

    White space and line breaks stay; digits do too, though `0` and `1` can pass for letters.
    """
    return text.translate(_TABLE)


def fold(text: str) -> Folded:
    """The result of `looks`, with the places."""
    lengths = (len(_TABLE[ord(character)]) for character in text)
    starts = list(accumulate(lengths, initial=0))
    return Folded(looks(text), starts[:-1])


def spelled(word: str) -> str:
    """A regular expression for a word in folded text, with the digits and letters that pass for its own."""
    like = {"o": "[o0]", "i": "[il1]", "l": "[il1]", "m": "(?:m|rn)"}
    return "".join(like.get(letter, letter) for letter in word)


def _looks_like(character: str) -> str:
    if character.isspace():
        return character
    if _UNSEEN.match(character):
        return ""
    parts = unicodedata.normalize("NFKD", character)
    return "".join(_letter(piece) for piece in parts if unicodedata.category(piece) not in _DROPPED)


_DROPPED = ("Cc", "Cf", "Mn", "Me")
"""Controls, and marks that a letter carries."""


def _letter(character: str) -> str:
    if character in _LATIN:
        return _LATIN[character]
    match = _NAMED.fullmatch(unicodedata.name(character, ""))
    return match[1].lower() if match else _LATIN.get(character.casefold(), character.casefold())
