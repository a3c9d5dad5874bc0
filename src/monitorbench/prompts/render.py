"""The one renderer: training and evaluation get their token ids from here.

The chat template's own text is encoded with its control tokens; everything that goes into a turn
(instructions and judged text) is encoded as plain text, in which no control token can arise. The
pieces are joined as ids, so what stands inside a turn can't change what stands around it. A template that
writes what changes by the day is refused.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2.exceptions import TemplateError

from monitorbench.config.study import Prompt, PromptKind, Reasoning
from monitorbench.engines.two_passes import ReasoningTokens
from monitorbench.prompts.label_tokens import (
    LabelTokens,
    ScaleTokens,
    behind,
    first_tokens,
    scale_tokens,
    single,
    word_tokens,
)
from monitorbench.prompts.wording import PLACE, WHOLE, Keep, PromptWording, asked_field
from monitorbench.records import Label, Sample

_DAYS = (datetime.date(2001, 2, 3), datetime.date(2034, 11, 12))
"""Two days that differ in year, month and day, however a template writes them."""


class ChangingTemplate(ValueError):
    """A chat template that writes something of its own which is another tomorrow."""


def templated(
    tokenizer: Any,
    turns: Sequence[Mapping[str, str]],
    *,
    date: datetime.date | None = None,
    add_generation_prompt: bool = False,
) -> str:
    """The text of a chat, `date` being the day that a template with `strftime_now` writes.

    Raises `ChangingTemplate` where the template writes the day and `date` is None, or writes anything else
    that differs from one call to the next; jinja's `TemplateError` for turns that it doesn't take.
    """
    first, second = (
        _rendered(tokenizer, turns, date or day, add_generation_prompt=add_generation_prompt) for day in _DAYS
    )
    if first == second:
        return first
    if date is not None:
        raise ChangingTemplate("the chat template writes something else each time; expected another template")
    raise ChangingTemplate(
        "the chat template writes the day, so that a score would be another tomorrow; expected "
        "monitor.template_date=YYYY-MM-DD"
    )


def _rendered(
    tokenizer: Any, turns: Sequence[Mapping[str, str]], day: datetime.date, *, add_generation_prompt: bool
) -> str:
    midnight = datetime.datetime.combine(day, datetime.time())
    # An argument of this name hides the function of Transformers that asks the clock.
    text: str = tokenizer.apply_chat_template(
        [*turns],
        tokenize=False,
        add_generation_prompt=add_generation_prompt,
        strftime_now=midnight.strftime,
    )
    return text


_SYSTEM, _USER, _ANSWER = "SYSTEMTURNGOESHERE", "USERTURNGOESHERE", "ANSWERTURNGOESHERE"


class Renderer:
    """A prompt bound to a tokenizer; `opening`, `reasoning` and `date` are the monitor's (`template_date`).

    Raises `ValueError` when the chat template drops or doubles a turn, or writes what changes by the day, or
    when a label word or the end of reasoning is no single token of this tokenizer.
    """

    def __init__(
        self,
        prompt: Prompt,
        tokenizer: Any,
        opening: str = "",
        reasoning: Reasoning | None = None,
        date: datetime.date | None = None,
    ) -> None:
        self.prompt = prompt
        self._tokenizer, self._date = tokenizer, date
        self._wording = PromptWording(prompt)
        # Longest first, so that the pattern names the whole of a token that contains another.
        self._control = sorted(tokenizer.get_added_vocab(), key=len, reverse=True)
        self._control_ids = frozenset(tokenizer.get_added_vocab().values())
        pattern = "|".join(re.escape(token) for token in self._control) or r"(?!)"
        self._control_pattern = re.compile(f"(?={pattern})")
        self._control_token = re.compile(pattern)
        self._guard: tuple[str, ...] = ()
        """A guard's text, cut at its control tokens: plain text and control tokens by turns."""
        if prompt.guard:
            self._set_up_guard(prompt.guard.answer_after)
        else:
            self._set_up_turns(self._wording.system, opening, "" if reasoning else prompt.prefill)
        self.reasoning = self._reasoning_tokens(reasoning) if reasoning else None
        writes_first = {
            PromptKind.EVIDENCE_FIRST: "writes its evidence",
            PromptKind.EXTRACT_THEN_JUDGE: "lists what was done",
            PromptKind.GUARD: "answers in a form of its own, without reasoning",
        }
        if reasoning and (preamble := writes_first.get(prompt.kind)):
            raise ValueError(f"it {preamble} first; expected a monitor with reasoning=null")
        if prompt.kind is PromptKind.EVIDENCE_FIRST:
            self._before_answer = self.label_begun
        self.scale = self._scale() if prompt.kind is PromptKind.GRADED else None
        """The tokens of a graded prompt's numbers; None for other kinds."""
        self.label_tokens = self._label_tokens()
        if set(self.label_tokens.misbehavior) & set(self.label_tokens.benign):
            raise ValueError("both label words share a token")

    def render(self, sample: Sample, shots: Sequence[Sample] = (), keep: Keep = WHOLE) -> tuple[int, ...]:
        """Token ids of the prompt for one sample, up to where the label, or reasoning, is to begin.

        `shots` are the examples of a few-shot prompt; `keep` leaves out the middle of what is judged.
        """
        if self._guard:
            judged = self._wording.judged(sample, keep)
            pieces = [PLACE.sub(lambda place: judged[place[0]], piece) for piece in self._guard[::2]]
            controls = [*map(self._encode, self._guard[1::2]), []]
            return tuple(
                i
                for piece, control in zip(pieces, controls, strict=True)
                for i in (*self.encode_plain(piece), *control)
            )
        return self._around(self._wording.user(sample, shots, keep))

    def behind_acts(self, sample: Sample, acts: str) -> tuple[int, ...]:
        """Token ids of the prompt that judges in one word what a monitor listed, up to the label.

        No control token can arise of the list, whatever it spells; the response is not in it.
        """
        return self._around(self._wording.judge_user(sample, acts))

    def _around(self, user: str) -> tuple[int, ...]:
        inside = self.encode_plain(self._lead + self._system_in_user + user + self._trail)
        return self._before + inside + self._after

    @property
    def label_begun(self) -> str:
        """Text between a monitor's evidence and its label, where the evidence comes first."""
        return f', "{asked_field(self.prompt)}": "'

    def behind_evidence(self, prompt_ids: Sequence[int], evidence: str) -> tuple[int, ...]:
        """The ids of a prompt of `render`, and of what was written on its prefill, up to the label's word.

        `evidence` is that text, prefill included; no control token can arise of it.
        """
        turn = prompt_ids[: len(prompt_ids) - len(self._after)]
        return (*turn, *self._encode_begun(self._turn_opening, evidence + self.label_begun))

    def behind_answer(self, prompt_ids: Sequence[int], answer: str) -> tuple[int, ...]:
        """The ids of a guard's prompt and of the answer that it began, up to the label's word."""
        return (*prompt_ids, *self.encode_plain(answer))

    def completion(self, label: Label) -> tuple[int, ...]:
        """Token ids a monitor is trained to answer with: the label word and the end of the turn."""
        return (self.label_tokens.of(label)[0], self.end_of_turn)

    def encode_plain(self, text: str) -> tuple[int, ...]:
        """Encode text in which no control token can arise, whatever it spells.

        Every spelled-out control token is cut after its first character and the parts are encoded
        apart. Raises `ValueError` if one arises all the same (a one-character control token).
        """
        cuts = [match.start() + 1 for match in self._control_pattern.finditer(text)]
        parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        ids = [i for piece in parts if piece for i in self._encode(piece)]
        if self._control_ids.intersection(ids):
            raise ValueError("judged text encodes to a control token")
        return tuple(ids)

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False).input_ids
        return ids

    def _set_up_guard(self, answer_after: str) -> None:
        text = self._wording.guard_text()
        self._guard = tuple(re.split(f"({self._control_token.pattern})", text))
        if self._tokenizer.eos_token_id is None:
            raise ValueError("the tokenizer has no token that ends an answer")
        self.end_of_turn: int = self._tokenizer.eos_token_id
        """Token id that ends the monitor's turn."""
        self._before_answer, self._blank = self._guard[-1] + answer_after, False

    def _set_up_turns(self, system: str, opening: str, prefill: str) -> None:
        turns = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _USER}]
        self._system_in_user = ""
        try:
            text = self._template(turns, add_generation_prompt=True)
        except TemplateError:  # a template without a system role
            turns = turns[1:]
            self._system_in_user = f"{system}\n\n"
            text = self._template(turns, add_generation_prompt=True)
        head, _, tail = text.partition(_USER)
        first, _, between = head.partition(_SYSTEM)
        # Text of the template that touches a turn's is encoded with it, as the template's own user would.
        if self._system_in_user:
            before, self._lead = self._up_to_control(head)
            self._before = tuple(self._encode(before))
        else:
            begin, lead = self._up_to_control(first)
            trail, remainder = self._from_control(between)
            closing, self._lead = self._up_to_control(remainder)
            self._before = (
                *self._encode(begin),
                *self.encode_plain(lead + system + trail),
                *self._encode(closing),
            )
        self._trail, after = self._from_control(tail)
        self._turn_opening = after + opening
        self._after = self._encode_begun(self._turn_opening, prefill)
        self._before_answer = self._from_last_control(tail + opening) + prefill
        answered = self._template([*turns, {"role": "assistant", "content": _ANSWER}])
        before_answer, _, behind_answer = answered.partition(_ANSWER)
        # Where the template itself writes a blank there, the model has learnt to.
        self._blank = before_answer == f"{text}{opening}{prefill} "
        ending = self._encode(behind_answer)
        ends = [i for i in ending if i in self._control_ids]
        if not ends and self._tokenizer.eos_token_id is None:
            raise ValueError("neither the chat template nor the tokenizer ends a turn")
        self.end_of_turn = ends[0] if ends else self._tokenizer.eos_token_id

    def _reasoning_tokens(self, reasoning: Reasoning) -> ReasoningTokens:
        ids = self._encode(reasoning.end)
        if len(ids) != 1:
            raise ValueError(f"monitor.reasoning.end={reasoning.end!r} is {len(ids)} tokens, expected one")
        answer_start = self._encode_begun(reasoning.then, self.prompt.prefill)
        self._before_answer = self._from_last_control(reasoning.end + reasoning.then) + self.prompt.prefill
        self._blank = False
        return ReasoningTokens(ids[0], answer_start, reasoning.max_tokens)

    def _encode_begun(self, ours: str, prefill: str) -> tuple[int, ...]:
        """Text that may hold control tokens, and the prefill, encoded with what touches it."""
        controlled, begun = self._up_to_control(ours)
        return (*self._encode(controlled), *self.encode_plain(begun + prefill))

    def _from_last_control(self, text: str) -> str:
        """Text before an answer, as far as it can matter to the answer's tokens."""
        starts = [match.start() for match in self._control_token.finditer(text)]
        return text[starts[-1] :] if starts else text

    def _up_to_control(self, text: str) -> tuple[str, str]:
        """Cut behind the last control token."""
        ends = [match.end() for match in self._control_token.finditer(text)]
        cut = ends[-1] if ends else 0
        return text[:cut], text[cut:]

    def _from_control(self, text: str) -> tuple[str, str]:
        """Cut before the first control token."""
        match = self._control_token.search(text)
        cut = match.start() if match else len(text)
        return text[:cut], text[cut:]

    def _template(self, turns: list[dict[str, str]], *, add_generation_prompt: bool = False) -> str:
        text = templated(self._tokenizer, turns, date=self._date, add_generation_prompt=add_generation_prompt)
        for turn in turns:
            if text.count(turn["content"]) != 1:
                raise ValueError(f"the chat template does not show the {turn['role']} turn exactly once")
        return text

    def single_tokens(self, word: str) -> tuple[int, ...]:
        """The ids that spell a word where the answer begins, with and without a blank; those of one token."""
        forms = (word, f" {word}")
        in_context = [behind(self._encode, self._before_answer, form) for form in forms]
        return single([*(self._encode(form) for form in forms), *in_context])

    def _label_tokens(self) -> LabelTokens:
        """Tokens of both labels; for a graded prompt those of the numbers on either side of `flag_from`."""
        words, scale = self.prompt.label_words, self.scale
        if guard := self.prompt.guard:
            return first_tokens(
                self._encode, self._before_answer, (words.misbehavior, *guard.also_misbehavior), words.benign
            )
        if scale is None:
            return LabelTokens(self._variants(words.misbehavior), self._variants(words.benign))
        flags = self.prompt.flag_from or 0
        return LabelTokens(
            tuple(token for tokens in scale.numbers[flags:] for token in tokens),
            tuple(token for tokens in scale.numbers[:flags] for token in tokens),
        )

    def _scale(self) -> ScaleTokens:
        begun, before = bool(self.prompt.prefill), self._before_answer
        return scale_tokens(self._encode, before, self.prompt.highest, begun=begun, blank=self._blank)

    def _variants(self, word: str) -> tuple[int, ...]:
        return word_tokens(
            self._encode, self._before_answer, word, begun=bool(self.prompt.prefill), blank=self._blank
        )
