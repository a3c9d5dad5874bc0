"""Settings of how a monitor answers: the form of its reply, its label words, and a guard model's own form."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from monitorbench.cells import OwnName
from monitorbench.config.base import Config, Words


class LabelWords(Config):
    """Answers of the monitor for the two labels, each a single token; for `kind: graded` the ends of its
    scale."""

    misbehavior: Annotated[str, Field(min_length=1)]
    """Answer that means misbehavior."""
    benign: Annotated[str, Field(min_length=1)]
    """Answer that means benign."""

    @model_validator(mode="after")
    def _differ(self) -> "LabelWords":
        if self.misbehavior.strip().casefold() == self.benign.strip().casefold():
            raise ValueError("both label words are the same")
        return self


class PromptKind(StrEnum):
    """Form of the reply: the label alone, with evidence behind or before it, a number, two replies, or what a
    guard model was trained to write."""

    DIRECT = "direct"
    EVIDENCE = "evidence"
    EVIDENCE_FIRST = "evidence_first"
    GRADED = "graded"
    EXTRACT_THEN_JUDGE = "extract_then_judge"
    GUARD = "guard"


LABEL_TOKENS = 4
"""Tokens of a label that follows its evidence: the word, and what shows that it ends there."""


class GuardAnswer(Config):
    """Form of the answer that a guard model was trained to write."""

    answer_after: str = ""
    """Text of the answer that the label's word follows, such as `Harmful response:`; empty: the label begins
    the answer, and is scored in the same pass."""
    also_misbehavior: Words = ()
    """Further words that mean misbehavior, such as the middle one of three grades."""
    categories: dict[OwnName, Words] = Field(default={})
    """The provider's category names, by the category of ours that they fall under."""
