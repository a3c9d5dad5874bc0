"""A text divided into prose and code, so that a change of the one leaves the other as it is."""

from collections.abc import Callable, Sequence

from monitorbench.stress.changes.text.fences import FencedText, cut_at_fences
from monitorbench.stress.changes.text.kept import TextSpan, kept_spans
from monitorbench.stress.changes.text.unfenced import cut_at_code

PYTHON = frozenset(("python", "py", "python3"))


def pieces(text: str) -> list[FencedText]:
    """The text in pieces: what stands between fences is code, and so is what looks like it elsewhere."""
    found = cut_at_fences(text)
    is_whole = len(found) == 1
    return [
        piece
        for one in found
        for piece in (cut_at_code(one.text, is_whole=is_whole) if one.kind == "prose" else [one])
    ]


def in_prose(text: str, rewrite: Callable[[str, Sequence[TextSpan]], str]) -> str:
    """The text with its prose rewritten, which is given with the spans in it that have to stay."""
    return "".join(
        rewrite(one.text, kept_spans(one.text)) if one.kind == "prose" else one.text for one in pieces(text)
    )


def in_code(text: str, rewrite: Callable[[str, str], str]) -> str:
    """The text with its code rewritten, which is given with its language; all else stays."""
    return "".join(
        rewrite(one.text, one.language) if one.kind == "code" else one.text for one in pieces(text)
    )
