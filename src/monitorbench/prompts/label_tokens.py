"""The token ids that count as a label: what a tokenizer makes of its word in the place where it stands.

A SentencePiece tokenizer has one token for a word at the beginning of a text or behind a blank (`▁yes`) and
another one for the same word behind a quote or a line break (`yes`), so that a word encoded alone says
nothing of the answer that a prompt began.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from monitorbench.records import Label

Encode = Callable[[str], list[int]]

_CLEAN = ("\n", '"', ".")
"""Texts behind which a word is encoded where the text that it stands behind would merge with it."""


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """Token ids that count as each label, the one that is trained first."""

    misbehavior: tuple[int, ...]
    benign: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        """Both labels' ids, misbehavior's first."""
        return self.misbehavior + self.benign

    def of(self, label: Label) -> tuple[int, ...]:
        """The ids of one label."""
        return self.misbehavior if label is Label.MISBEHAVIOR else self.benign


def word_tokens(
    encode: Encode, before: str, word: str, *, begun: bool, blank: bool = False
) -> tuple[int, ...]:
    """The single tokens that say a word behind the text `before`, the natural one first.

    The word as it is, capitalised and in capitals, with and without a blank in front: behind `before`, and
    then as each is encoded alone, which is how a turn begins for a tokenizer that puts a blank in front of a
    text. Of several tokens none counts.

    Args:
        encode: a text's token ids, without any that the tokenizer adds.
        before: what precedes the word, from its last control token on.
        word: the label's word.
        begun: whether the prompt began the answer, so that the word has to go on right behind `before`.
        blank: whether the chat template writes a blank in front of an answer.

    Raises `ValueError` where the word is no single token there.

    """
    spellings = [word, word.capitalize(), word.upper()]
    blanks = [f" {spelling}" for spelling in spellings]
    forms = blanks + spellings if blank else spellings + blanks
    in_context = [behind(encode, before, form) for form in forms] if before else []
    alone = [encode(form) for form in forms]
    needed = (
        [in_context[0]]
        if begun and in_context
        else [encoded[0] for encoded in (in_context, alone) if encoded]
    )
    if not any(len(ids) == 1 for ids in needed):
        where = f" behind {before!r}" if before else ""
        raise ValueError(f"label word {word!r} is {len(needed[0])} tokens{where}, expected one")
    return single(in_context + alone)


def behind(encode: Encode, before: str, text: str) -> list[int]:
    """The ids of `text` behind `before`; behind another text where both would share a token."""
    for preceding in (before, *_CLEAN):
        head = encode(preceding)
        ids = encode(preceding + text)
        if ids[: len(head)] == head:
            return ids[len(head) :]
    return encode(text)


def single(encoded: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Tokens of those encodings that are a single token, each once, in their order."""
    return tuple(dict.fromkeys(ids[0] for ids in encoded if len(ids) == 1))
