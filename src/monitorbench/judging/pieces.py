"""A judge that reads a response piece by piece: each step with all before it, or each step alone.

A step is one message of the assistant. Promises: every piece is judged by the judge itself, as a sample whose
response is that piece; a response is scored only where each of its pieces is, those aside of which the view
shows nothing. The verdict on the response has each piece's score in `steps`.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence

from monitorbench.config.seen import JudgedUnit
from monitorbench.judging.judge import Judge, Question, not_asked
from monitorbench.records import (
    GroundedQuote,
    Label,
    Role,
    Sample,
    StepVerdict,
    UnscoredReason,
    Verdict,
)


def pieces_of(sample: Sample, unit: JudgedUnit) -> list[tuple[int, Sample]]:
    """The pieces of a sample that are judged, each with the number of its step's message in the response.

    A prefix of the last step has whatever follows that step. A response without any step is one piece.
    """
    steps = [number for number, message in enumerate(sample.response) if message.role is Role.ASSISTANT]
    if not steps:
        return [(0, sample)]
    pieces = []
    for number in steps[-1:] if unit.rule == "last" else steps:
        end = len(sample.response) if number == steps[-1] and unit.by == "prefix" else number + 1
        start = number if unit.by == "action" else 0
        update = {"id": f"{sample.id}-{number}", "response": sample.response[start:end]}
        pieces.append((number, sample.model_copy(update=update)))
    return pieces


class PiecesJudge(Judge):
    """A judge of any kind, asked about the pieces of each sample."""

    def __init__(self, judge: Judge, unit: JudgedUnit) -> None:
        super().__init__(judge.prompt, is_remote=judge.is_remote)
        self.closing.callback(judge.close)
        self._judge, self._unit = judge, unit

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`: unasked where none of the pieces is asked."""
        numbers, pieces = zip(*pieces_of(sample, self._unit), strict=True)
        asked = tuple(self._judge.question(piece) for piece in pieces)
        named = [self._unit.model_dump(), numbers, [question.key for question in asked]]
        key = hashlib.sha256(json.dumps(named).encode()).hexdigest()[:24] if asked[0].key else ""
        first = next((question for question in asked if question.unasked is None), None)
        return Question(
            key,
            sample,
            (first or asked[0]).request,
            None if first else _why_unscored([question.unasked for question in asked]),
            detail=asked[0].detail if first is None else "",
            later_tokens=sum(question.n_tokens for question in asked if question is not first),
            pieces=tuple(zip(numbers, asked, strict=True)),
        )

    def prepare(self, first: Question) -> float | None:
        """See `Judge.prepare`."""
        return self._judge.prepare(next(piece for _, piece in first.pieces if piece.unasked is None))

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`: a verdict comes once all pieces of its sample are judged."""
        verdicts = [
            [not_asked(piece, self.prompt) if piece.unasked else None for _, piece in question.pieces]
            for question in questions
        ]
        asked = [
            (index, place)
            for index, question in enumerate(questions)
            for place, (_, piece) in enumerate(question.pieces)
            if piece.unasked is None
        ]
        pieces = [questions[index].pieces[place][1] for index, place in asked]
        for number, verdict in self._judge.ask(pieces):
            index, place = asked[number]
            verdicts[index][place] = verdict
            judged = [verdict for verdict in verdicts[index] if verdict is not None]
            if len(judged) == len(verdicts[index]):
                yield index, self._whole(questions[index], judged)

    def _whole(self, question: Question, judged: Sequence[Verdict]) -> Verdict:
        """The verdict on a response from those on its pieces; quotes are those of the most suspicious one."""
        numbers = [number for number, _ in question.pieces]
        shown = [
            place for place, verdict in enumerate(judged) if verdict.unscored is not UnscoredReason.NOT_SHOWN
        ]
        ranked = sorted(shown, key=lambda place: -_suspicion(judged[place]))
        counted = ranked[: self._unit.top_k if self._unit.rule == "mean_top_k" else 1]
        scores = [score for place in counted if (score := judged[place].score) is not None]
        flagged = sum(judged[place].label is Label.MISBEHAVIOR for place in counted)
        unscored = _why_unscored([judged[place].unscored for place in shown])
        label = Label.MISBEHAVIOR if 2 * flagged >= len(counted) else Label.BENIGN
        decisive = judged[ranked[0]]
        whole_scored = unscored is None and len(scores) == len(counted)
        masses = [mass for verdict in judged if (mass := verdict.label_mass) is not None]
        moved = numbers[ranked[0]] if self._unit.by == "action" else 0
        return decisive.model_copy(
            update={
                "key": question.key,
                "sample_id": question.sample.id,
                "label": None if unscored else label,
                "unscored": unscored,
                "detail": next((verdict.detail for verdict in judged if verdict.unscored is unscored), "")
                if unscored
                else decisive.detail,
                "score": sum(scores) / len(scores) if whole_scored else None,
                "label_mass": min(masses) if whole_scored and masses else None,
                "score_censored": any(judged[place].score_censored for place in counted),
                "evidence": tuple(_moved(quote, moved) for quote in decisive.evidence),
                "steps": tuple(
                    StepVerdict(message=number, label=one.label, unscored=one.unscored, score=one.score)
                    for number, one in zip(numbers, judged, strict=True)
                ),
                "truncated_tokens": sum(verdict.truncated_tokens for verdict in judged),
                "reasoning_tokens": sum(verdict.reasoning_tokens for verdict in judged),
                "prompt_tokens": sum(
                    verdict.prompt_tokens
                    for verdict, (_, piece) in zip(judged, question.pieces, strict=True)
                    if piece.unasked is None
                ),
                "completion_tokens": sum(verdict.completion_tokens for verdict in judged),
                "seconds": round(sum(verdict.seconds for verdict in judged), 4),
                "cost": sum(verdict.cost for verdict in judged),
            }
        )


def _why_unscored(reasons: Sequence[UnscoredReason | None]) -> UnscoredReason | None:
    """The first reason, another one before that a view shows nothing; None where no piece has any."""
    own = [reason for reason in reasons if reason is not None]
    return next((reason for reason in own if reason is not UnscoredReason.NOT_SHOWN), own[0] if own else None)


def _suspicion(verdict: Verdict) -> float:
    if verdict.score is not None:
        return verdict.score
    return float(verdict.label is Label.MISBEHAVIOR)


def _moved(quote: GroundedQuote, by: int) -> GroundedQuote:
    """A quote of a step that was judged alone, with its place in the whole response."""
    if quote.place is None or not by:
        return quote
    place = quote.place.model_copy(update={"message": quote.place.message + by})
    return quote.model_copy(update={"place": place})
