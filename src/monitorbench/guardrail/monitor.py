"""A calibrated monitor over one sample: its judge's score, or its rule's over several, at its threshold.

What the rule says of a missing score holds for a judge's own answers that are none; a judge that could not be
asked leaves the sample unjudged, whatever the others say, since no calibration had that.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from monitorbench.config.deployment import Serve
from monitorbench.conversations.chats import unread_content
from monitorbench.guardrail.calibrated import Calibrated, ServedBaseline, ServedJudge, open_part
from monitorbench.guardrail.runner import PendingQuestion, Runner, Unjudged
from monitorbench.metrics.guarantees.order_statistic import longer
from monitorbench.records import Label, Sample, UnscoredReason, Verdict
from monitorbench.scoring.combination.cascade import Cascade, run_cascade, sent_on
from monitorbench.scoring.combination.ensembles import combine


class GuardrailVerdict(NamedTuple):
    """A monitor's verdict at its threshold."""

    flagged: bool | None
    """None: unscored, for `why`."""
    score: float | None
    why: str
    """A word of few: an `UnscoredReason`, `no_score`, `no_threshold` or `failed`; empty where scored."""
    detail: str
    prompt_tokens: int


class OpenMonitor:
    """The judges of a calibrated monitor, open."""

    def __init__(self, calibrated: Calibrated, runners: Mapping[str, Runner]) -> None:
        self._runners = runners
        self.name = calibrated.monitor
        self.calibrated = calibrated

    @property
    def is_failing(self) -> bool:
        """Whether a judge gives no answers at present."""
        return any(runner.is_failing for runner in self._runners.values())

    def verdict(self, sample: Sample, deadline: float) -> GuardrailVerdict:
        """The verdict on a sample of a known category; `deadline` is on `time.monotonic`."""
        try:
            score, verdicts = self._score(sample, deadline)
        except Unjudged as error:
            return GuardrailVerdict(None, None, error.why, error.detail, 0)
        tokens = sum(verdict.prompt_tokens for verdict in verdicts)
        if score is None:
            why = next((verdict.unscored.value for verdict in verdicts if verdict.unscored), "no_score")
            detail = "; ".join(filter(None, (verdict.detail for verdict in verdicts)))
            return GuardrailVerdict(None, None, why, detail, tokens)
        label = self.calibrated.label(score, str(sample.category))
        if label is None:
            return GuardrailVerdict(
                None, score, "no_threshold", f"category {sample.category} has none", tokens
            )
        if label is Label.BENIGN and any(verdict.truncated_tokens for verdict in verdicts):
            detail = "; ".join(verdict.detail for verdict in verdicts if verdict.truncated_tokens)
            return GuardrailVerdict(None, score, UnscoredReason.TOO_LONG.value, detail, tokens)
        unread = unread_content((*sample.request, *sample.response))
        said = filter(None, (unread, longer(self.calibrated.longest_prompt, tokens)))
        return GuardrailVerdict(label is Label.MISBEHAVIOR, score, "", "; ".join(said), tokens)

    def _score(self, sample: Sample, deadline: float) -> tuple[float | None, list[Verdict]]:
        """The score, and what was asked for it."""
        rule = self.calibrated.rule
        if isinstance(rule, Cascade):
            return self._cascade(rule, sample, deadline)
        verdicts = self._ask_all(sample, deadline)
        if rule is None:
            (verdict,) = verdicts.values()
            return verdict.score, [verdict]
        scores = combine(
            rule, {name: np.array([judged.score], dtype=np.float64) for name, judged in verdicts.items()}
        )
        return _number(scores[0]), list(verdicts.values())

    def _cascade(self, rule: Cascade, sample: Sample, deadline: float) -> tuple[float | None, list[Verdict]]:
        cheap = self._ask(rule.cheap, sample, deadline)
        if not sent_on(rule, [cheap.score])[0]:
            return _number(run_cascade(rule, [cheap.score], [None]).scores[0]), [cheap]
        strong = self._ask(rule.strong, sample, deadline)
        cascaded = run_cascade(rule, [cheap.score], [strong.score])
        return _number(cascaded.scores[0]), [strong, cheap]

    def _ask_all(self, sample: Sample, deadline: float) -> dict[str, Verdict]:
        """The verdict of each judge; where one can't be asked the others are not waited for."""
        pending: dict[str, PendingQuestion] = {}
        try:
            for name, runner in self._runners.items():
                pending[name] = runner.begin(sample, deadline)
            return {name: self._runners[name].result(question) for name, question in pending.items()}
        except (Unjudged, RuntimeError):
            for question in pending.values():
                question.drop()
            raise

    def _ask(self, name: str, sample: Sample, deadline: float) -> Verdict:
        runner = self._runners[name]
        return runner.result(runner.begin(sample, deadline))


@contextmanager
def open_monitor(
    calibrated: Calibrated, seconds: float, most_waiting: int = Serve().at_once
) -> Iterator[OpenMonitor]:
    """The judges of a calibrated monitor, loaded and tried; an answer is waited for so many seconds.

    Of each judge at most `most_waiting` questions wait. Raises what `open_part` raises.
    """
    runners: dict[str, Runner] = {}
    try:
        for name, served in calibrated.parts.items():
            runners[name] = _runner(name.rpartition("/")[0], served, seconds, most_waiting)
        yield OpenMonitor(calibrated, runners)
    finally:
        for runner in runners.values():
            runner.close()


def _runner(name: str, part: ServedJudge | ServedBaseline, seconds: float, most_waiting: int) -> Runner:
    opens = partial(open_part, part, seconds)
    if isinstance(part, ServedBaseline) or part.study.engine.takes_token_ids:
        return Runner(name, opens, opens, most_waiting=most_waiting)
    engine = part.study.engine
    again = None
    if engine.server is not None:
        # It may come back elsewhere; nobody waits for it with a request in hand.
        at_once = engine.model_copy(update={"server_seconds": 0})
        again = partial(
            open_part, part._replace(study=part.study.model_copy(update={"engine": at_once})), seconds
        )
    return Runner(name, opens, again, threads=engine.concurrency, most_waiting=most_waiting)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
