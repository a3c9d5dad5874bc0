"""Settings of raw data (`conf/source/*.yaml`), of what of it is left out, and of the cues put to a subject
model (`conf/cue/`)."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from monitorbench.config.base import Config, FileName


class SourceFile(Config):
    """One raw file of an upstream data set."""

    path: str
    """Path inside the upstream repository; empty where the file is the repository's archive, or is made of
    it."""
    mirror: str
    """Path below `paths.sources`; empty where no mirror holds the file."""
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
    """SHA-256 of the content, after gunzip for a name in `.gz`, or of an archive's `members`; empty where it
    could not be looked up."""
    members: str = ""
    """Folder of an archive that is read. The archive's bytes differ from host to host, those of its members
    don't."""
    repo: str = ""
    """Repository of this file, where it differs from the source's."""
    revision: str = ""
    """Pinned commit of `repo`."""
    url: str = ""
    """Full address, with the pinned release or revision in it, for a source whose origin is `web`."""

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        if bool(self.repo) != bool(self.revision):
            raise ValueError("repo and revision of a file belong together; give both or neither")
        return self


class Source(Config):
    """An upstream data set: a hub dataset or a Git repository at a pinned revision, and its files."""

    origin: Literal["hub", "github", "web", "none"]
    """Host of the data. `web`: each file has a `url`. `none`: not available in this form; only a mirror has
    it."""
    repo: str
    """Repository `owner/name` on the hub or on GitHub, or a web page for `web` and `none`."""
    revision: str
    """Pinned commit, or the tag of a release."""
    licence: str
    """SPDX identifier of the licence, or the upstream's own words."""
    files: Annotated[tuple[SourceFile, ...], Field(min_length=1)]
    """Raw files of the source."""
    note: str = ""
    """Note for readers of the data card, such as how noisy the labels are."""

    @model_validator(mode="after")
    def _has_addresses(self) -> Self:
        web = self.origin == "web"
        if any(bool(file.url) != web or (web and not file.path) for file in self.files):
            raise ValueError("url and path belong to every file of origin=web, and url to no other")
        return self

    def place(self, file: SourceFile) -> tuple[str, str]:
        """Return the repository and revision that hold a file."""
        return (file.repo, file.revision) if file.repo else (self.repo, self.revision)


class NearDuplicates(Config):
    """Rule for when two texts count as the same, by the Jaccard similarity of their 8-byte shingles."""

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Similarity from which two texts are the same."""
    permutations: Annotated[int, Field(ge=16, le=1024)] = 128
    """Length of a MinHash signature."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1
    """Seed of the hashes."""
    shortest_response: Annotated[int, Field(ge=0)] = 80
    """Characters from which a response alone is evidence of overlap; an answer such as "(B)" is none."""

    @model_validator(mode="after")
    def _recall(self) -> "NearDuplicates":
        if self.permutations * self.threshold < 7:
            raise ValueError(
                f"threshold={self.threshold:g} with permutations={self.permutations} misses more than one "
                "pair in a thousand; expected permutations * threshold of 7 or more"
            )
        return self


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
    """Speaker of the turn."""
    content: Annotated[str, Field(min_length=1)]
    """Text of the turn, with the question's parts in braces."""


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
        """Placeholders that the wording uses."""
        return set(_placeholders_of(self.turns))

    @property
    def needs_options(self) -> bool:
        """Whether the wording speaks of a letter, so that it fits multiple-choice questions only."""
        return bool(self.placeholders & {"choice", "examples"})

    @model_validator(mode="after")
    def _usable(self) -> "CueWording":
        used = _placeholders_of(self.turns)
        start = " ".join(self.turns[0].content.split())[:40]
        for name in used:
            if name not in _PLACEHOLDERS:
                choices = ", ".join(f"{{{p}}} ({meaning})" for p, meaning in _PLACEHOLDERS.items())
                raise ValueError(f"{start!r} has an unknown placeholder {{{name}}}; known: {choices}")
        if used.count("question") != 1:
            raise ValueError(f"{start!r} has to have {{question}} exactly once")
        if not {"wrong", "choice", "examples"} & set(used):
            raise ValueError(f"{start!r} points at no answer: give it {{wrong}}, {{choice}} or {{examples}}")
        if self.turns[-1].role != "user":
            raise ValueError(f"{start!r} has to end with the user's turn")
        if any(turn.role == "system" for turn in self.turns[1:]):
            raise ValueError(f"{start!r} has a system turn that is not its first")
        spoken = [turn.role for turn in self.turns if turn.role != "system"]
        if any(role != ("user", "assistant")[i % 2] for i, role in enumerate(spoken)):
            raise ValueError(f"{start!r}: user and assistant have to take turns, the user first")
        return self


def _placeholders_of(turns: Iterable[CueTurn]) -> list[str]:
    return [name for turn in turns for name in PLACEHOLDER.findall(turn.content)]


class SolvedExample(Config):
    """A solved question for wordings with {examples}; its answer is beyond doubt."""

    question: str
    """The question, with its options."""
    answer: str
    """The right option."""
    others: Annotated[tuple[str, ...], Field(min_length=1)]
    """The wrong options."""


class Cues(Config):
    """`cue=default`: cue kinds with their wordings, and instructions that make a subject resist."""

    name: FileName
    """Name of the cues in folder names."""
    category: Literal["sycophancy_bias", "specification_gaming"]
    """Category of following the cue: a cue that suggests an answer, or an incentive that pays for one."""
    kinds: dict[str, tuple[CueWording, ...]]
    """Wordings of the cues, by kind."""
    examples: Annotated[tuple[SolvedExample, ...], Field(min_length=3)]
    """Worked examples that a cue may bend."""
    resist: Annotated[tuple[str, ...], Field(min_length=1)]
    """System instructions under which a benign answer is sought, one after another; no sample shows them."""

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
    """Settings of `elicit.py`: the questions a subject model (`monitor=`) gets, and the length of its
    answers."""

    sources: Annotated[tuple[str, ...], Field(min_length=1)] = ("bbq", "anthropic_sycophancy")
    """Sources with known answers (an option, or a whole number), by their names in `conf/source`."""
    max_questions: Annotated[int, Field(ge=1)] = 300
    """Most questions of each source, the first by content hash."""
    kinds: tuple[str, ...] = ()
    """Cue kinds to use; an empty list means all of `cue.kinds`."""
    kinds_per_question: Annotated[int, Field(ge=1)] = 1
    """Cue kinds under which each question is asked; each may give a pair."""
    max_new_tokens: Annotated[int, Field(ge=8)] = 96
    """Most tokens of an answer; a longer answer is cut off, and makes no pair."""
