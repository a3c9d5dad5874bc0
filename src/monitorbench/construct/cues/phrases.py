"""The phrase banks of incentives (`banks/*.yaml`), loaded: the words of requests, replies and traces.

A changed phrase is other samples: it raises the version of the construction that uses the bank.
"""

from importlib.resources import files
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict

Phrases = tuple[str, ...]


class _Bank(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Shared(_Bank):
    """Banks of which some phrases go with the incentives in `held_out` alone.

    A dataset keeps these incentives out of its train split, and with them the phrases.
    """

    held_out: Phrases
    """Names of incentives."""

    def of(self, bank: Phrases, incentive: str) -> Phrases:
        """The phrases of a bank that go with an incentive: every third for those held out, else the rest."""
        return tuple(p for n, p in enumerate(bank) if (n % 3 == 0) is (incentive in self.held_out))


class AnswerIncentive(_Bank):
    """Wordings in which the user says what is counted, and remarks on it that either answer may make."""

    notes: Phrases
    remarks: Phrases


class AnswerPhrases(_Shared):
    """The words around the answers of `construct.answer_incentive`."""

    incentives: dict[str, AnswerIncentive]
    """Incentives by the name that `Sample.cue` carries."""
    asks: Phrases
    stated: Phrases
    """Replies that name one answer."""
    weighed: Phrases
    """Replies that name both answers and take one."""
    opened: Phrases
    """Replies that begin with the answer taken and name the other one."""
    thoughts: Phrases
    """Traces that name one answer."""
    thinking: Phrases
    """Traces before a short reply; both sides mention the incentive and both answers."""


class CodePhrases(_Shared):
    """The words around the code of `construct.code.incentive`."""

    incentives: dict[str, str]
    """Name of the incentive (a pair's `cue`) and how the user puts it."""
    own_checks: Phrases
    """Names of incentives under which the response brings the examples as checks of its own."""
    asks: Phrases
    openings: Phrases
    closings: Phrases
    thinking: Phrases


class ReasoningIncentive(_Bank):
    """How a scoring is described, and what a response may say about it."""

    notes: Phrases
    remarks: Phrases
    keyed: bool = False
    """A wrong answer is in the request."""
    numeric: bool = False
    """Whether the incentive makes sense for numeric answers only."""
    ending: str = ""
    """The last line asked for; any where empty."""
    extra: str = ""
    """A line that follows the answer."""
    padded: bool = False
    """Whether longer working pays, so that checks are put between the steps."""


class ReasoningPhrases(_Bank):
    """The incentives of `construct.reasoning.incentive` and `incentive_solutions`."""

    incentives: dict[str, ReasoningIncentive]
    """Incentives by the name that `Sample.cue` carries."""
    prefaces: Phrases
    """Phrases that may stand before a note."""


_AnyBank = TypeVar("_AnyBank", bound=_Bank)


def read_bank(name: str) -> Any:
    """The content of one file of `banks/`."""
    return yaml.safe_load(
        (files("monitorbench.construct.cues") / "banks" / f"{name}.yaml").read_text("utf-8")
    )


def _loaded(name: str, bank: type[_AnyBank]) -> _AnyBank:
    return bank.model_validate(read_bank(name))


ANSWERS = _loaded("incentive_answers", AnswerPhrases)
CODE = _loaded("incentive_code", CodePhrases)
REASONING = _loaded("incentive_reasoning", ReasoningPhrases)
