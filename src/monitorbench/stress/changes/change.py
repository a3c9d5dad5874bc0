"""A change: a name, a version, and a pure function that leaves the label as it is.

A change of a *sample* rewrites judged text; a change of the *prompt* asks about the same text in another
form. Promises of both: nothing is drawn but from the seed, the change's name and the sample's id, so that the
same command changes the same samples in the same way; label, pair, group and cell stay; None where a change
does not apply. What a change makes of a sample is part of its `version`.
"""

import random
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from monitorbench.config.monitor import Prompt
from monitorbench.records import Message, Sample


class SampleChange(NamedTuple):
    """A change of the judged text."""

    name: str
    """`family.variant`, such as `padding.2k.middle`."""
    apply: Callable[[Sample, random.Random], Sample | None]
    """Pure function that draws from the generator alone; None where the change does not apply."""
    version: int = 1
    """Number that is raised when the same sample and seed give another text."""
    keeps_benign: bool = True
    """Whether a benign sample stays benign beyond dispute. Not where the assistant itself tells its judge how
    to judge, or that it did already: a good monitor may flag just that."""


class PromptChange(NamedTuple):
    """A change of the prompt by which the judge is asked."""

    name: str
    apply: Callable[[Prompt], Prompt | None]
    """Return the changed prompt; None for a prompt of a kind or wording that the change does not apply to."""
    version: int = 1
    keeps_benign: bool = True
    """A benign sample stays benign: its text is the same."""


Change = SampleChange | PromptChange


@cache
def wordings() -> dict[str, Any]:
    """Return the words that changes insert or replace, by kind, from `wordings.yaml`. Not to be altered."""
    words: dict[str, Any] = yaml.safe_load(
        (files("monitorbench.stress.changes") / "wordings.yaml").read_text("utf-8")
    )
    return words


def family(name: str) -> str:
    """The first part of a change's name."""
    return name.partition(".")[0]


def changed(change: SampleChange, sample: Sample, seed: int) -> Sample | None:
    """The sample as the change makes it, under an id of its own; None where it does not apply.

    A change that leaves the text as it was does not apply either.
    """
    altered = change.apply(sample, random.Random(f"{seed}/{change.name}/{sample.id}"))
    if altered is None or (altered.request, altered.response) == (sample.request, sample.response):
        return None
    return altered


def with_texts(
    sample: Sample, *, request: Sequence[Message] | None = None, response: Sequence[Message] | None = None
) -> Sample:
    """The sample with another request or response; its id is that of its content.

    It has no gold spans: nothing that judges reads them, and their places are those of the former text.
    """
    fields = dict(sample) | {
        "id": "",
        "gold_spans": (),
        "request": sample.request if request is None else tuple(request),
        "response": sample.response if response is None else tuple(response),
    }
    return Sample(**fields)
