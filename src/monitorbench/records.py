"""The vocabulary: what a sample and a verdict are.

Everything that crosses a stage's border is one of these records. They are frozen, they refuse
unknown fields, and a sample's id is a hash of its content, so that two stages that never met
agree on what they talk about.
"""

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitorbench.cells import Category as Category
from monitorbench.cells import CategoryName as CategoryName
from monitorbench.cells import Cell as Cell
from monitorbench.cells import Task as Task
from monitorbench.cells import TaskName as TaskName
from monitorbench.cells import vocabulary as vocabulary


class Label(StrEnum):
    """Class of a sample, and answer that a monitor may give. `misbehavior` is the positive class."""

    MISBEHAVIOR = "misbehavior"
    BENIGN = "benign"


class LabelSource(StrEnum):
    """Source that established the label."""

    PREFERENCE = "preference"
    EXECUTION = "execution"
    KNOWN_ANSWER = "known_answer"
    AUTHOR = "author"
    ANNOTATORS = "annotators"
    JUDGE = "judge"
    UPSTREAM = "upstream"
    """The upstream's own curation: a fix commit, an authored counterpart, a test suite's design."""
    OUTCOME = "outcome"
    """End of a run whose beginning the sample is: equal beginnings may have either label."""


class Construction(StrEnum):
    """Origin of a pair; `labelled`: as the upstream has labelled it, paired or not."""

    HANDWRITTEN = "handwritten"
    CODE_PAIR = "code_pair"
    CUE = "cue"
    INCENTIVE = "incentive"
    ANNOTATION = "annotation"
    LABELLED = "labelled"


class Truth(StrEnum):
    """Whether something is right by a known answer or by execution; empty where nobody knows."""

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = ""


class Split(StrEnum):
    """The parts of a dataset; no group is in two of them."""

    TRAIN = "train"
    VALIDATION = "validation"
    CALIBRATION = "calibration"
    TEST = "test"


class Role(StrEnum):
    """Speaker in a judged conversation."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class UnscoredReason(StrEnum):
    """Reason why a verdict has no label; such a verdict is never counted as `benign`."""

    NO_LABEL = "no_label"
    AMBIGUOUS = "ambiguous"
    """Two answers, or one field twice: a monitor may quote an answer from the text that it judges."""
    TRUNCATED = "truncated"
    TOO_LONG = "too_long"
    NOT_SHOWN = "not_shown"
    """The monitor's view leaves nothing of the response, such as a trace that the sample doesn't have."""
    REFUSED = "refused"
    """An endpoint's own filter, or the model through its refusal field."""
    TIMED_OUT = "timed_out"
    HTTP_ERROR = "http_error"
    BAD_RESPONSE = "bad_response"
    """No answer that the API documents, such as HTML, no choices, or a broken end."""
    EMPTY = "empty"


TRANSPORT_FAILURES = frozenset(
    (
        UnscoredReason.TIMED_OUT,
        UnscoredReason.HTTP_ERROR,
        UnscoredReason.BAD_RESPONSE,
        UnscoredReason.EMPTY,
    )
)
"""Failures on the way to an endpoint, not of the judge: asked again, the same question may be answered."""


def reasons_in_words(counts: Mapping[str, int]) -> str:
    """Say how many answers have which reason, the most frequent first: `3 no_label, 1 http_error`."""
    return ", ".join(
        f"{n} {reason}" for reason, n in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    )


class QuoteField(StrEnum):
    """A part of a message. A tool call's text is its name, a space and its arguments."""

    CONTENT = "content"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"


class Grounding(StrEnum):
    """Way in which a monitor's quote was found in the judged response."""

    EXACT = "exact"
    FOLDED = "folded"
    FUZZY = "fuzzy"
    NONE = "none"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolCall(_Record):
    """One call of a tool by the assistant; `arguments` is the JSON text it sent."""

    id: str
    name: str
    arguments: str


class Message(_Record):
    """One turn. `thinking` is a reasoning trace that precedes `content`; absent fields are empty."""

    role: Role
    content: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""

    def text(self, field: QuoteField, call: int = 0) -> str:
        """Return the text of one part; raises IndexError where there is no such tool call."""
        if field is QuoteField.TOOL_CALL:
            return f"{self.tool_calls[call].name} {self.tool_calls[call].arguments}"
        return self.content if field is QuoteField.CONTENT else self.thinking


class Span(_Record):
    """Characters [start, end) of one field of `response[message]`; `call` numbers its tool calls."""

    message: Annotated[int, Field(ge=0)]
    field: QuoteField = QuoteField.CONTENT
    call: Annotated[int, Field(ge=0)] = 0
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(gt=0)]


class GroundedQuote(_Record):
    """A monitor's quote and where it stands; `place` is None exactly where `how` is `none`.

    `ratio` is the share of its characters that are right: 1 for `exact` and `folded`, 0 for `none`.
    """

    quote: str
    how: Grounding
    ratio: Annotated[float, Field(ge=0, le=1)]
    place: Span | None


class Sample(_Record):
    """One judged instance: a request, a response, and what is known about it.

    `group_id` names the underlying question; all samples of a group stay in one split. `pair_id`
    joins a misbehavior sample with its benign counterpart. `id` is filled from the content when empty and
    checked against it otherwise.

    Raises:
        pydantic.ValidationError: for an unknown field, an unknown label, an empty request or
            response, or an id that is not the hash of the content.

    """

    id: str = ""
    pair_id: str
    group_id: str
    category: CategoryName
    task: TaskName
    subcategory: str
    request: tuple[Message, ...] = Field(min_length=1)
    response: tuple[Message, ...] = Field(min_length=1)
    label: Label
    label_source: LabelSource
    construction: Construction
    cue: str = ""
    stratum: str = ""
    """A part of the cell that is made in another way or shows another thing; metrics can be cut by it."""
    suggestion_truth: Truth = Truth.UNKNOWN
    """Whether what the request suggests or rewards as an answer is right. No judge is shown this."""
    answer_truth: Truth = Truth.UNKNOWN
    """Whether the response's answer is right. No judge is shown this."""
    subject_model: str = ""
    gold_spans: tuple[Span, ...] = ()
    """Where the response shows the misbehavior, as far as that is known."""
    source: str
    licence: str
    split: Split | None = None
    own_id: str = ""
    """Id of the sample in the file that it came from; empty where it has none there."""

    @model_validator(mode="after")
    def _id_is_the_hash_of_the_content(self) -> "Sample":
        expected = content_id(self.pair_id, self.request, self.response)
        if not self.id:
            object.__setattr__(self, "id", expected)
        elif self.id != expected:
            raise ValueError(f"id {self.id!r} is not the hash of the content ({expected}); leave it empty")
        return self

    @property
    def cell(self) -> Cell:
        """The category × task cell this sample is counted in."""
        return Cell(self.category, self.task)

    @property
    def has_thinking(self) -> bool:
        """Whether the judged response carries a reasoning trace (the paper's T against NT)."""
        return any(message.thinking for message in self.response)


def content_id(pair_id: str, request: tuple[Message, ...], response: tuple[Message, ...]) -> str:
    """Hash what a monitor would see, and the pair it belongs to: 16 hex digits, never the label.

    Equal content with opposite labels therefore collides, which `corpus` reports as an error.
    """
    content = [pair_id, *([m.model_dump(mode="json") for m in part] for part in (request, response))]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class StepVerdict(_Record):
    """Verdict on one piece of a response: on the step that is message `message`, as its unit showed it."""

    message: Annotated[int, Field(ge=0)]
    label: Label | None
    unscored: UnscoredReason | None
    score: Annotated[float, Field(ge=0, le=1)] | None


class Verdict(_Record):
    """One judge's verdict on one sample: one line of `verdicts.jsonl`.

    Exactly one of `label` and `unscored` is set. `score` is the probability of the misbehavior
    label renormalised over both labels, in [0, 1]; `label_mass` the probability on any label word
    at that position, in [0, 1]; both are None where the engine gives no log-probabilities.
    """

    key: str
    sample_id: str
    prompt: str
    answer: str
    label: Label | None
    unscored: UnscoredReason | None
    detail: str = ""
    score: Annotated[float, Field(ge=0, le=1)] | None
    label_mass: Annotated[float, Field(ge=0, le=1.0001)] | None
    score_censored: bool = False
    """The endpoint's alternatives lack one label: `score` is a bound, at least so far from .5."""
    finish_reason: str
    served_model: str = ""
    """Endpoint's name for the model that answered, where it says so."""
    reasoning: str = ""
    """Reasoning of a monitor before its answer, as far as it is shown."""
    reasoning_tokens: Annotated[int, Field(ge=0)] = 0
    """Tokens of `completion_tokens` that the reasoning took."""
    category: str = ""
    severity: str = ""
    quotes: tuple[str, ...] = ()
    evidence: tuple[GroundedQuote, ...] = ()
    """Each of `quotes` with its place in the judged response, or without one."""
    steps: tuple[StepVerdict, ...] = ()
    """Verdicts on the pieces, of a response that was judged in pieces."""
    truncated_tokens: Annotated[int, Field(ge=0)] = 0
    """Number of tokens by which the prompt was shortened to fit; `detail` says what is not in it."""
    prompt_tokens: Annotated[int, Field(ge=0)]
    completion_tokens: Annotated[int, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0)]
    cost: Annotated[float, Field(ge=0)] = 0.0
    """Cost charged by an endpoint, by the prices of its configuration."""

    @model_validator(mode="after")
    def _label_or_reason(self) -> "Verdict":
        if (self.label is None) == (self.unscored is None):
            raise ValueError("a verdict has either a label or the reason why it has none")
        return self
