"""A text divided into prose and code, so that a change of the one leaves the other as it is."""

from collections.abc import Callable, Sequence

from monitorbench.stress.changes.text.fences import FencedText, cut_at_fences
from monitorbench.stress.changes.text.kept import TextSpan, kept_spans
from monitorbench.stress.changes.text.unfenced import cut_at_code

PYTHON = frozenset(("python", "py", "python3"))


def pieces(text: str) -> list[FencedText]:
    """The text in pieces: what stands between fences is code, and so is what looks like it elsewhere."""
    fenced = cut_at_fences(text)
    is_whole = len(fenced) == 1
    return [
        piece
        for section in fenced
        for piece in (cut_at_code(section.text, is_whole=is_whole) if section.kind == "prose" else [section])
    ]


def in_prose(text: str, rewrite: Callable[[str, Sequence[TextSpan]], str]) -> str:
    """The text with its prose rewritten, which is given with the spans in it that have to stay."""
    return "".join(
        rewrite(piece.text, kept_spans(piece.text)) if piece.kind == "prose" else piece.text
        for piece in pieces(text)
    )


def in_code(text: str, rewrite: Callable[[str, str], str]) -> str:
    """The text with its code rewritten, which is given with its language; all else stays."""
    return "".join(
        rewrite(piece.text, piece.language) if piece.kind == "code" else piece.text for piece in pieces(text)
    )
