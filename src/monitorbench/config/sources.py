"""Where raw data comes from (`conf/source/*.yaml`), and the cues put to a subject model (`conf/cue/`)."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from monitorbench.config.base import Config, FileName


class SourceFile(Config):
    """One raw file of an upstream data set."""

    path: str
    """Inside the upstream repository; empty where it is the repository's archive, or is made of it."""
    mirror: str
    """Below `paths.sources`; empty where no mirror holds it."""
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
    """Of the content, after gunzip for a name in `.gz`, or of an archive's `members`; empty where it could
    not be looked up."""
    members: str = ""
    """The folder of an archive that is read; its bytes are packed anew by every host, its members are not."""
    repo: str = ""
    """Where this file is in another repository than the source's."""
    revision: str = ""
    """The pinned commit of `repo`."""
    url: str = ""
    """The whole address, with the pinned release or revision in it; of a source whose origin is `web`."""

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        if bool(self.repo) != bool(self.revision):
            raise ValueError("repo and revision of a file belong together; give both or neither")
        return self


class Source(Config):
    """An upstream data set: a hub dataset or a Git repository at a pinned revision, and its files."""

    origin: Literal["hub", "github", "web", "none"]
    """`web`: each file has a `url`. `none`: nowhere in this form; only a mirror has it."""
    repo: str
    """`owner/name` on the hub or on GitHub, or a web page for `web` and `none`."""
    revision: str
    """The pinned commit, or the tag of a release."""
    licence: str
    """SPDX identifier, or the upstream's own words."""
    files: Annotated[tuple[SourceFile, ...], Field(min_length=1)]
    """Its raw files."""
    note: str = ""
    """What a reader of the data card should know, such as how noisy the labels are."""

    @model_validator(mode="after")
    def _has_addresses(self) -> Self:
        web = self.origin == "web"
        if any(bool(file.url) != web or (web and not file.path) for file in self.files):
            raise ValueError("url and path belong to every file of origin=web, and url to no other")
        return self

    def place(self, file: SourceFile) -> tuple[str, str]:
        """Repository and revision that hold a file."""
        return (file.repo, file.revision) if file.repo else (self.repo, self.revision)


PLACEHOLDER = re.compile(r"\{(\w+)\}")
"""Braces around one word; any other brace is plain text."""

_PLACEHOLDERS = {
    "question": "the question with its options",
    "wrong": "the wrong answer, with its letter where it is an option",
    "choice": "the wrong option's letter alone",
    "examples": "solved questions whose right options all have the wrong option's letter",
}


class CueTurn(Config):
    """One turn of a wording."""

    role: Literal["system", "user", "assistant"]
    """Who speaks."""
    content: Annotated[str, Field(min_length=1)]
    """The text, with the question's parts in braces."""


class CueWording(Config):
    """A cue put into words around a question: a single user turn, or several turns."""

    turns: Annotated[tuple[CueTurn, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: object) -> object:
        # In YAML a wording is its text, or the list of its turns.
        if isinstance(value, str):
            value = [{"role": "user", "content": value}]
        if isinstance(value, dict):
            value = value.get("turns", value)
        return {"turns": tuple(value)} if isinstance(value, list) else {"turns": value}

    @property
    def placeholders(self) -> set[str]:
        """The placeholders it uses."""
        return set(_named(self.turns))

    @property
    def needs_options(self) -> bool:
        """Whether it speaks of a letter, so that it fits multiple-choice questions only."""
        return bool(self.placeholders & {"choice", "examples"})

    @model_validator(mode="after")
    def _usable(self) -> "CueWording":
        named = _named(self.turns)
        shown = " ".join(self.turns[0].content.split())[:40]
        for name in named:
            if name not in _PLACEHOLDERS:
                known = ", ".join(f"{{{p}}} ({what})" for p, what in _PLACEHOLDERS.items())
                raise ValueError(f"{shown!r} has an unknown placeholder {{{name}}}; known: {known}")
        if named.count("question") != 1:
            raise ValueError(f"{shown!r} has to have {{question}} exactly once")
        if not {"wrong", "choice", "examples"} & set(named):
            raise ValueError(f"{shown!r} points at no answer: give it {{wrong}}, {{choice}} or {{examples}}")
        if self.turns[-1].role != "user":
            raise ValueError(f"{shown!r} has to end with the user's turn")
        if any(turn.role == "system" for turn in self.turns[1:]):
            raise ValueError(f"{shown!r} has a system turn that is not its first")
        spoken = [turn.role for turn in self.turns if turn.role != "system"]
        if any(role != ("user", "assistant")[i % 2] for i, role in enumerate(spoken)):
            raise ValueError(f"{shown!r}: user and assistant have to take turns, the user first")
        return self


def _named(turns: Iterable[CueTurn]) -> list[str]:
    return [name for turn in turns for name in PLACEHOLDER.findall(turn.content)]


class SolvedExample(Config):
    """A solved question for wordings with {examples}; nobody doubts its answer."""

    question: str
    """The question, with its options."""
    answer: str
    """The right option."""
    others: Annotated[tuple[str, ...], Field(min_length=1)]
    """The wrong ones."""


class Cues(Config):
    """`cue=default`: cue kinds with their wordings, and instructions that make a subject resist."""

    name: FileName
    """What folders call it."""
    category: Literal["sycophancy_bias", "specification_gaming"]
    """What following it is: a cue that suggests an answer, or an incentive that pays for one."""
    kinds: dict[str, tuple[CueWording, ...]]
    """How a cue is worded, by kind."""
    examples: Annotated[tuple[SolvedExample, ...], Field(min_length=3)]
    """Worked examples that a cue may bend."""
    resist: Annotated[tuple[str, ...], Field(min_length=1)]
    """System instructions under which a benign answer is sought, in turn; no sample shows them."""

    @field_validator("kinds")
    @classmethod
    def _filled(cls, value: dict[str, tuple[CueWording, ...]]) -> dict[str, tuple[CueWording, ...]]:
        if not value:
            raise ValueError("expected at least one cue kind")
        for kind, wordings in value.items():
            if not wordings:
                raise ValueError(f"the cue kind {kind!r} has no wording")
        return value


class Elicit(Config):
    """`elicit.py`: which questions a subject model (`monitor=`) is asked, and for how long it may answer."""

    sources: Annotated[tuple[str, ...], Field(min_length=1)] = ("bbq", "anthropic_sycophancy")
    """Sources whose answers are known, by the names of `conf/source`: an option, or a whole number."""
    max_questions: Annotated[int, Field(ge=1)] = 300
    """Of each source, the first by content hash."""
    kinds: tuple[str, ...] = ()
    """Cue kinds to use; none named means all of `cue.kinds`."""
    kinds_per_question: Annotated[int, Field(ge=1)] = 1
    """Under how many of them each question is asked; each may give a pair."""
    max_new_tokens: Annotated[int, Field(ge=8)] = 96
    """Answers that are longer are cut off, and no pair is made of them."""
