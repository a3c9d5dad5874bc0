"""A calibrated monitor whose judges answer by script, and a guardrail on it, over a socket or without one."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from made_verdicts import made_verdict

from monitorbench.config.deployment import Serve
from monitorbench.guardrail.calibrated import Calibrated
from monitorbench.guardrail.monitor import OpenMonitor
from monitorbench.guardrail.runner import Runner
from monitorbench.guardrail.service import Guardrail, serving
from monitorbench.judging.identity import RECORDED_PROMPT
from monitorbench.judging.judge import Judge, Question
from monitorbench.records import Sample, UnscoredReason, Verdict
from monitorbench.scoring.combination.cascade import Cascade
from monitorbench.scoring.combination.ensembles import Ensemble
from monitorbench.scoring.operating_point import CalibratedThreshold, OperatingPoint, threshold_point

NAME = "judge/direct/0123456789ab"


Says = Callable[[Sample], Verdict]


def verdict(
    score: float | None, unscored: UnscoredReason = UnscoredReason.NO_LABEL, detail: str = "", tokens: int = 0
) -> Verdict:
    """A score without a label of its own, or the reason why there is neither."""
    return made_verdict(None, score, unscored=unscored, detail=detail, prompt_tokens=tokens)


class ScriptedJudge(Judge):
    """A judge that says what a function says of each sample."""

    def __init__(self, says: Says) -> None:
        super().__init__(RECORDED_PROMPT)
        self._says = says

    def question(self, sample: Sample) -> Question:
        """See `Judge`."""
        return Question("", sample)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge`."""
        for index, question in enumerate(questions):
            yield index, self._says(question.sample)


def by_number(sample: Sample) -> Verdict:
    """The score that the response spells; `none` is unscored, `die` is a model that breaks."""
    text = sample.response[-1].content.strip()
    if text == "die":
        raise RuntimeError("the model died")
    if text == "lost":
        return verdict(None, UnscoredReason.HTTP_ERROR, "connection refused")
    try:
        score = float(text)
    except ValueError:
        return verdict(None, tokens=3)
    return verdict(score, tokens=3)


def threshold(value: float | None, category: str = "", monitor: str = NAME) -> CalibratedThreshold:
    """One that was calibrated on paper."""
    return CalibratedThreshold(
        method="neyman_pearson",
        monitor=monitor,
        category=category,
        data="made",
        part="whole",
        alpha=0.05,
        delta=0.05,
        n=100,
        n_unscored=0,
        threshold=value,
        reason="" if value is not None else "too few",
    )


def scripted(says: Says) -> Runner:
    """A runner of one judge, which opening anew gives again."""
    judge = ScriptedJudge(says)
    return Runner("judge", lambda: judge, lambda: judge)


@contextmanager
def monitor_of(
    judges: Mapping[str, Says] | Says = by_number,
    point: OperatingPoint | None = None,
    rule: Ensemble | Cascade | None = None,
    runners: Mapping[str, Runner] | None = None,
    longest: float | None = None,
) -> Iterator[OpenMonitor]:
    """A monitor with a threshold of .5 unless another point is given."""
    named = judges if isinstance(judges, Mapping) else {NAME: judges}
    made = dict(runners or {name: scripted(one) for name, one in named.items()})
    point = point or threshold_point(threshold(0.5))
    try:
        yield OpenMonitor(Calibrated(Path("point"), point, Path("run"), rule, {}, longest), made)
    finally:
        for runner in made.values():
            runner.close()


class Running(NamedTuple):
    """A guardrail that listens."""

    port: int
    guardrail: Guardrail
    folder: Path

    def post(
        self, body: object, path: str = "/guardrail", headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and answer; a body that is no bytes is sent as JSON."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, sent, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


@contextmanager
def running(monitor: OpenMonitor, folder: Path, key: str | None = None, **settings: Any) -> Iterator[Running]:
    """A guardrail over a socket, its logs in `folder`."""
    with serving(monitor, Serve(**settings), folder, 0, key) as (server, guardrail):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Running(server.port, guardrail, folder)
        finally:
            server.shutdown()
            thread.join()
