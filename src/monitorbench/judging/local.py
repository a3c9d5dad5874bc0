"""A prompt on a model that is given token ids: rendered, and read by token id, here.

What decides a verdict is token ids, weights, adapter, decoding and dtype (decision 9). Promises: a prompt
that the context can't hold says so, or is shortened where the prompt says so; an adapter that changes
nothing judges nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from monitorbench.config.monitor import LABEL_TOKENS, Monitor, Prompt, PromptKind
from monitorbench.engines.protocol import Decoding, Model, Reply, Request, Tap
from monitorbench.engines.two_passes import think_first
from monitorbench.judging.identity import IN_KEYS, NO_SHOTS, verdict_key
from monitorbench.judging.judge import PromptJudge, Question, Reading, unasked
from monitorbench.judging.passes import (
    NumberModel,
    evidence_first,
    extract_then_judge,
    guard_answers,
    ledger,
)
from monitorbench.prompts.few_shot import Shots
from monitorbench.prompts.label_tokens import Score, graded_score, score, sum_of_logs
from monitorbench.prompts.parse import Answer, parse, parse_text
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.transcript import characters, seen_request
from monitorbench.prompts.wording import Keep
from monitorbench.records import Sample, UnscoredReason

_ANSWERED_IN = {PromptKind.EVIDENCE_FIRST: LABEL_TOKENS, PromptKind.EXTRACT_THEN_JUDGE: 1}
"""Tokens of the second answer, of kinds whose label is asked for behind what was written first."""


class TokenJudge(PromptJudge):
    """A prompt on a model with a tokenizer."""

    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        monitor: Monitor,
        identity: Mapping[str, Any] | None,
        shots: Shots = NO_SHOTS,
        words: Sequence[str] = (),
        *,
        is_remote: bool = False,
    ) -> None:
        """Raises `ValueError` where prompt, words or reasoning don't fit the tokenizer."""
        super().__init__(model, prompt, is_remote=is_remote)
        renderer = Renderer(
            prompt, model.tokenizer, monitor.opening, monitor.reasoning, monitor.template_date
        )
        self._renderer, self._shots = renderer, shots
        if renderer.scale:
            self._model = NumberModel(model, renderer.scale)
        self._tokens_of = {word: _single_tokens(renderer, word) for word in words}
        of_words = tuple(token for tokens in self._tokens_of.values() for token in tokens)
        scored = renderer.scale.all if renderer.scale else renderer.label_tokens.all
        self._first: Decoding | None = None
        """Of what precedes the label, the evidence or a list, where the prompt asks for it."""
        if prompt.kind in _ANSWERED_IN or (prompt.guard and prompt.guard.answer_after):
            self._first = Decoding(prompt.max_new_tokens, (renderer.end_of_turn,))
        answered_in = _ANSWERED_IN.get(prompt.kind, prompt.max_new_tokens)
        if prompt.guard and prompt.guard.answer_after:
            answered_in = 1
        self._decoding = Decoding(answered_in, (renderer.end_of_turn,), of_words if words else scored)
        thinks = renderer.reasoning
        self._before_label: tuple[int, ...] = ()
        room = 0
        if thinks:
            self._before_label = (thinks.end, thinks.max_tokens, *thinks.answer_start)
            room = thinks.max_tokens + 1 + len(thinks.answer_start)
        self._context_tokens = monitor.context_tokens
        if prompt.kind is PromptKind.EVIDENCE_FIRST:
            begun = renderer.encode_plain(renderer.label_begun)
            self._before_label, room = (prompt.max_new_tokens, *begun), len(begun)
        if prompt.guard and prompt.guard.answer_after:
            begun, room = renderer.encode_plain(prompt.guard.answer_after), 1
            self._before_label = (prompt.max_new_tokens, *begun)
        self._fits = monitor.context_tokens - prompt.most_tokens - room
        self._names = {name: identity[name] for name in IN_KEYS} if identity else None

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`."""
        shots = self._shots.beside(sample)
        ids = self._renderer.render(sample, shots)
        truncated_tokens = 0
        detail = f"{len(ids)} tokens, {self._fits} fit" if len(ids) > self._fits else ""
        if len(ids) > self._fits and self.prompt.too_long == "middle_truncate":
            shortened = middle_truncate(self._renderer, sample, self._fits, shots)
            ids, truncated_tokens, detail = shortened or (ids, 0, detail)
        judging = self._renderer.behind_acts(sample, "") if self.prompt.judge_user is not None else ()
        return Question(
            self._key(sample.id, ids, judging),
            sample,
            Request(token_ids=ids),
            unasked(sample.response, self.prompt, fits=len(ids) <= self._fits),
            truncated_tokens,
            detail,
            later_tokens=len(judging) + self.prompt.max_new_tokens if judging else 0,
        )

    def _key(self, sample_id: str, ids: tuple[int, ...], judging: tuple[int, ...]) -> str:
        if self._names is None:
            return ""
        decides, prompt, scale = self._before_label, self.prompt, self._renderer.scale
        if scale:
            decides = (*decides, prompt.highest, prompt.flag_from or 0, scale.zero or 0)
        if judging:
            decides = (*decides, prompt.max_new_tokens, *judging)
        return verdict_key(sample_id, ids, decoding=self._decoding, reasoning=decides, **self._names)

    def replies(self, questions: Sequence[Question], tap: Tap | None = None) -> Iterator[tuple[int, Reply]]:
        """See `PromptJudge.replies`; behind thoughts, evidence or a list the label is asked for.

        `tap` is what a probe reads of the passes of a prompt that is asked once.
        """
        requests = [question.request for question in questions]
        thinks = self._renderer.reasoning
        if self._first and self.prompt.kind is PromptKind.EXTRACT_THEN_JUDGE:
            return extract_then_judge(
                self._model.answers, questions, self._first, self._decoding, self._judging
            )
        if self._first and self.prompt.guard:
            after = self.prompt.guard.answer_after
            return guard_answers(self._model, requests, self._first, self._decoding, self._renderer, after)
        if self._first:
            fits = self._context_tokens - LABEL_TOKENS
            return evidence_first(self._model, requests, self._first, self._decoding, self._renderer, fits)
        if thinks is None:
            return self._model.answers(requests, replace(self._decoding, tap=tap) if tap else self._decoding)
        return think_first(self._model, requests, self._decoding, thinks)

    def ledger(self, questions: Sequence[Question], most_acts: int) -> Iterator[tuple[int, Reply]]:
        """See `PromptJudge.ledger`."""
        assert self._first is not None, "the prompt lists before it judges"
        return ledger(self._model.answers, questions, self._first, self._decoding, self._judging, most_acts)

    def _judging(self, sample: Sample, acts: str) -> Request | None:
        """The prompt that judges a list, where it fits."""
        ids = self._renderer.behind_acts(sample, acts)
        fits = self._context_tokens - self._decoding.max_new_tokens
        return Request(token_ids=ids) if len(ids) <= fits else None

    def read(self, reply: Reply) -> Reading:
        """See `PromptJudge.read`."""
        if reply.failure is not None:
            return Reading(reply.begun, Answer(None, UnscoredReason(reply.failure)), Score(None, None))
        tokens = self._renderer.label_tokens
        if self.prompt.guard:
            text = reply.begun or reply.text
            answer = parse_text(self.prompt, text, reply.finish_reason)
            return Reading(text, answer, score(reply.logprobs, tokens))
        answer = parse(
            self.prompt, tokens, reply.token_ids, reply.text, reply.finish_reason, evidence=reply.begun
        )
        text = (reply.begun or self.prompt.prefill) + reply.text
        if self._renderer.scale:
            return Reading(text, answer, graded_score(reply.top_logprobs or {}, self.prompt.highest))
        return Reading(text, answer, score(reply.logprobs, tokens))

    def word_logprobs(self, reply: Reply) -> Mapping[str, float]:
        """See `PromptJudge.word_logprobs`: summed over the tokens that spell a word."""
        return {
            word: sum_of_logs([reply.logprobs[token] for token in tokens])
            for word, tokens in self._tokens_of.items()
        }


def _single_tokens(renderer: Renderer, word: str) -> tuple[int, ...]:
    ids = renderer.single_tokens(word)
    if not ids:
        raise ValueError(f"{word!r} is no single token of this model")
    return ids


LEAST_OF_THE_RESPONSE = 1000
"""Characters of a response that stay whatever happens: without them nothing is left to judge."""


class Shortened(NamedTuple):
    """Token ids that fit; `left_out_tokens` (> 0) is by how many they are fewer than the whole prompt's."""

    token_ids: tuple[int, ...]
    left_out_tokens: int
    detail: str


def middle_truncate(
    renderer: Renderer, sample: Sample, limit: int, shots: Sequence[Sample] = ()
) -> Shortened | None:
    """Shorten a prompt of more than `limit` tokens; None where even the least that has to stay is longer.

    The middle of the response goes first, down to a stated rest, then that of the request; the examples and
    the prompt's own words stay. A line says how much is not there.

    Bisection over the number of characters left out, so that about as much stays as fits. Every
    candidate is rendered: that its ids fit is seen, not computed.
    """
    n_tokens = len(renderer.render(sample, shots))
    view = renderer.prompt.view
    n_request = characters(seen_request(sample.request, view), view)
    n_response = characters(sample.response, view)
    spare = max(0, n_response - LEAST_OF_THE_RESPONSE)

    def without(cut: int) -> tuple[int, ...]:
        keep = Keep(n_request - max(0, cut - spare), n_response - min(cut, spare))
        return renderer.render(sample, shots, keep)

    too_little, enough = 0, spare + n_request
    ids = without(enough)
    if len(ids) > limit:
        return None
    while enough - too_little > 1:
        cut = (too_little + enough) // 2
        candidate = without(cut)
        if len(candidate) <= limit:
            enough, ids = cut, candidate
        else:
            too_little = cut
    parts = {"response": min(enough, spare), "request": max(0, enough - spare)}
    removed = " and ".join(f"{n} characters of the {name}" for name, n in parts.items() if n)
    return Shortened(ids, n_tokens - len(ids), f"{removed} left out")
