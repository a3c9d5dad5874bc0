"""Prompts that ask a model twice: its evidence, its list or its numbers, and what stands behind them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from monitorbench import strict_json
from monitorbench.engines.protocol import Decoding, Model, Reply, Request
from monitorbench.engines.two_passes import Ask, SecondPass, ask_twice, joined, without_answer
from monitorbench.judging.judge import Question
from monitorbench.prompts.label_tokens import ScaleTokens, sum_of_logs
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.wording import asked_field
from monitorbench.records import Sample

_EVIDENCE_AT_ONCE, _LISTS_AT_ONCE = 1024, 256
"""First passes before the second ones are made: an interruption costs so many at most."""
_NO_ACT = "none"
"""A list's line where a piece of a response has no act to list."""
_AT_ONCE = 64
"""Prompts between both passes: few enough that a small cache still holds them in the second."""


def evidence_first(
    model: Model,
    requests: Sequence[Request],
    evidence: Decoding,
    label: Decoding,
    renderer: Renderer,
    fits: int,
) -> Iterator[tuple[int, Reply]]:
    """Yield (index into `requests`, reply with its evidence in `begun`), each index once, in any order.

    `evidence` and `label` are the decodings of both passes; a second prompt has at most `fits` tokens. A
    failure where the evidence did not end (`truncated`) or is no JSON (`no_label`).
    """

    def go_on(index: int, reply: Reply) -> SecondPass | Reply:
        begun = _evidence(renderer, reply)
        ids = renderer.behind_evidence(requests[index].token_ids, begun) if begun else ()
        if not begun or len(ids) > fits:
            unfinished = replace(reply, begun=renderer.prompt.prefill + reply.text)
            ended = "is no JSON object, or has a field twice"
            return without_answer(unfinished, failure_if_ended=ended, what="evidence")
        return SecondPass(Request(token_ids=ids), replace(reply, begun=begun + renderer.label_begun))

    return ask_twice(model.answers, requests, evidence, label, go_on, at_once=_EVIDENCE_AT_ONCE)


def _evidence(renderer: Renderer, reply: Reply) -> str:
    """The text in front of the label, prefill included; empty where that did not end."""
    text = renderer.prompt.prefill + reply.text
    members = strict_json.members_before(text, asked_field(renderer.prompt))
    if members is None or not members.values:
        return ""
    ended = members.field is not None or members.closed or reply.finish_reason != "length"
    return text[: members.end] if ended else ""


def guard_answers(
    model: Model,
    requests: Sequence[Request],
    answer: Decoding,
    label: Decoding,
    renderer: Renderer,
    after: str,
) -> Iterator[tuple[int, Reply]]:
    """Yield (index into `requests`, reply with a guard's whole answer in `begun`), each index once.

    What the guard writes in front of its label decides that label, so that the label is scored behind it:
    behind the first `after` of the answer. A failure where there is none.
    """

    def go_on(index: int, reply: Reply) -> SecondPass | Reply:
        begun, found, _ = reply.text.partition(after)
        if not found:
            return without_answer(
                replace(reply, begun=reply.text), failure_if_ended=f"has no {after!r}", what="answer"
            )
        ids = renderer.behind_answer(requests[index].token_ids, begun + after)
        return SecondPass(Request(token_ids=ids), replace(reply, begun=reply.text))

    return ask_twice(model.answers, requests, answer, label, go_on, at_once=_EVIDENCE_AT_ONCE)


def extract_then_judge(
    ask: Ask,
    questions: Sequence[Question],
    listing: Decoding,
    label: Decoding,
    judging: Callable[[Sample, str], Request | None],
) -> Iterator[tuple[int, Reply]]:
    """Yield (index into `questions`, reply with the list in `begun`), each index once, in any order.

    The second prompt is rendered from what came back for the first, as text: nothing that the response or the
    list spells becomes part of the prompt around them. `listing` and `label` are the decodings of both
    passes; `judging` gives the second request from the list, None where the model's context can't hold it. A
    list that ran out of tokens is judged up to its last whole line, and `detail` says so. A failure where
    there is no whole line (`truncated`), or nothing (`no_label`).
    """

    def go_on(index: int, reply: Reply) -> SecondPass | Reply:
        first = _listed(reply)
        if first.failure:
            return first
        request = judging(questions[index].sample, first.begun)
        if request is None:
            return replace(first, failure="truncated", detail="list and request exceed the context")
        return SecondPass(request, replace(first, begun=f"{first.begun}\n"))

    requests = [question.request for question in questions]
    return ask_twice(ask, requests, listing, label, go_on, at_once=_LISTS_AT_ONCE, counts_second_prompt=True)


def ledger(
    ask: Ask,
    questions: Sequence[Question],
    listing: Decoding,
    label: Decoding,
    judging: Callable[[Sample, str], Request | None],
    most_acts: int,
) -> Iterator[tuple[int, Reply]]:
    """Yield (index into `questions`, reply with the ledger in `begun`), each index once, in their order.

    Each piece of a question is listed, as `extract_then_judge` lists a whole response, and the lists together
    are judged. Of more than `most_acts` lines each piece keeps its first ones, as many as leave room for the
    others; `detail` says how many are left out, and which lists ran out of tokens. A piece that says `none`
    adds nothing. A failure where one was not listed: what was not read is never judged.
    """
    for index, question in enumerate(questions):
        pieces = [piece.request for piece in question.pieces if piece.unasked is None]
        lists = sorted(ask(pieces, listing))
        listed = [_listed(reply) for _, reply in lists]
        spent = replace(
            next((reply for reply in listed if reply.failure), listed[0]),
            prompt_tokens=sum(reply.prompt_tokens for reply in listed),
            completion_tokens=sum(reply.completion_tokens for reply in listed),
            seconds=sum(reply.seconds for reply in listed),
            cost=sum(reply.cost for reply in listed),
        )
        if spent.failure:
            yield index, spent
            continue
        acts, left_out = _shared_out([reply.begun.splitlines() for reply in listed], most_acts)
        lost = dict.fromkeys(filter(None, (*(reply.detail for reply in listed), left_out)))
        spent = replace(spent, detail="; ".join(lost))
        request = judging(question.sample, acts)
        if request is None:
            detail = "ledger and request exceed the context"
            yield index, replace(spent, failure="truncated", detail=detail)
            continue
        ((_, answer),) = ask([request], label)
        yield index, joined(replace(spent, begun=f"{acts}\n"), answer, counts_second_prompt=True)


def _shared_out(lists: Sequence[Sequence[str]], most: int) -> tuple[str, str]:
    """At most `most` lines of the lists, or one of each, in their order; and in words what is left out."""
    acts = [[line for line in lines if line.strip("-* .").casefold() != _NO_ACT] for lines in lists]
    by_turns = sorted((n, i) for i, lines in enumerate(acts) for n in range(len(lines)))
    kept = sorted((i, n) for n, i in by_turns[: max(most, sum(map(bool, acts)))])
    lost = len(by_turns) - len(kept)
    left_out = f"{lost} of {len(by_turns)} acts left out (prompt.unit.most_acts={most})" if lost else ""
    return "\n".join(acts[i][n] for i, n in kept) or _NO_ACT, left_out


def _listed(reply: Reply) -> Reply:
    """The reply with its list in `begun`, and nothing that could be read as a label."""
    lines = reply.text.strip().splitlines()
    cut = reply.finish_reason == "length"
    listing = "\n".join(lines[:-1] if cut else lines).strip()
    problem = (
        f"list cut off at {reply.completion_tokens} tokens" if cut else "" if listing else "nothing listed"
    )
    detail = "; ".join(filter(None, (reply.detail, problem)))
    listed = replace(
        reply, text="", token_ids=(), top_logprobs=None, logprobs={}, begun=listing, detail=detail
    )
    if listing:
        return listed
    return replace(listed, failure="truncated" if cut else "no_label", begun=reply.text)


class NumberModel(Model):
    """A `Model` whose scored replies have each number's log-probability, by its text, in `top_logprobs`.

    Where the tokenizer splits 10, its first token is also how 1 begins: what follows is asked for in a second
    pass, so that the probabilities of 1 and 10 are those of the model and no guess. What is not scored, such
    as the thoughts of a monitor that reasons first, is passed on as it is. Prompt and completion tokens are
    those of the first pass, seconds and cost of both.
    """

    def __init__(self, model: Model, scale: ScaleTokens) -> None:
        self.tokenizer = model.tokenizer
        self._model, self._scale = model, scale

    def prepare(self, first: Request, decoding: Decoding) -> float | None:
        """See `Model.prepare`."""
        return self._model.prepare(first, decoding)

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`."""
        if not decoding.scored_token_ids:
            yield from self._model.answers(requests, decoding)
            return
        if self._scale.zero is None:
            for index, reply in self._model.answers(requests, decoding):
                yield index, self._with_numbers(reply, None)
            return
        for start in range(0, len(requests), _AT_ONCE):
            for offset, reply in self._both(requests[start : start + _AT_ONCE], decoding, self._scale.zero):
                yield start + offset, reply

    def _both(
        self, requests: Sequence[Request], decoding: Decoding, zero: int
    ) -> Iterator[tuple[int, Reply]]:
        one_ids = self._scale.numbers[1]
        first: dict[int, Reply] = {}
        for index, reply in self._model.answers(requests, decoding):
            if reply.failure is not None:
                yield index, reply
            else:
                first[index] = reply
        pairs = [(index, one_id) for index in first for one_id in one_ids]
        behind = [Request(token_ids=(*requests[index].token_ids, one_id)) for index, one_id in pairs]
        second: dict[int, dict[int, Reply]] = {index: {} for index in first}
        for number, reply in self._model.answers(behind, Decoding(1, decoding.stop_token_ids, (zero,))):
            index, one_id = pairs[number]
            second[index][one_id] = reply
            if len(second[index]) == len(one_ids):
                yield index, self._joined(first[index], second[index], zero)

    def _joined(self, first: Reply, second: dict[int, Reply], zero: int) -> Reply:
        replies = second.values()
        reply = replace(
            first,
            seconds=first.seconds + sum(one.seconds for one in replies),
            cost=first.cost + sum(one.cost for one in replies),
        )
        failed = next((one for one in replies if one.failure is not None), None)
        if failed is not None:
            return replace(reply, failure=failed.failure, detail=failed.detail)
        logprobs = [
            first.logprobs.get(one, float("nan")) + reply.logprobs.get(zero, float("nan"))
            for one, reply in second.items()
        ]
        return self._with_numbers(reply, sum_of_logs(logprobs))

    def _with_numbers(self, reply: Reply, ten: float | None) -> Reply:
        if reply.failure is not None:
            return reply
        return replace(reply, top_logprobs=self._scale.logprobs(reply.logprobs, ten))

    def close(self) -> None:
        """See `Model.close`."""
        self._model.close()
