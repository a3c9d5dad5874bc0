"""Whether a judge's scores are functions of the sample: measured while it judges, required of a threshold.

Promise: a run whose scores depend on what was batched together sets no threshold, and every run says how far
its scores moved when samples were asked about again, alone.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from monitorbench.config.base import UserError
from monitorbench.config.engine import is_reproducible
from monitorbench.judging.identity import JudgeSpec
from monitorbench.judging.judge import Question
from monitorbench.judging.logged import LoggedJudge
from monitorbench.metrics.rates import REPRODUCIBLE_WITHIN

_MOST_ASKED_AGAIN = 4
"""How many samples are asked about again alone, at most; one of a monitor that reasons, which takes long."""
_SHARE_ASKED_AGAIN = 10
"""One of so many samples, at most, is asked about again."""
_log = logging.getLogger(__name__)


class ScoreSpread(TypedDict):
    """Statement of an evaluation's manifest about its scores."""

    scores: str
    """`reproducible`, `fast`, or `unknown` of an endpoint that is not a server of ours."""
    precision: str
    """Numeric type of the scores' computation; empty where nobody says."""
    largest: float | None
    """The largest difference between a sample's score and its score when asked about alone.

    None where that was not measured."""
    n: int
    """How many samples were asked about again."""


def measure_spread(judge: LoggedJudge, questions: Sequence[Question], spec: JudgeSpec) -> ScoreSpread:
    """Ask again, alone, about a few of the samples that were just judged together, and compare their scores.

    An endpoint that may cost money is not asked again.
    """
    precision = str(spec.identity["dtype"])
    words = {True: "reproducible", False: "fast", None: "unknown"}
    kind = words[is_reproducible(precision)]
    spread = ScoreSpread(scores=kind, precision=precision, largest=None, n=0)
    if spec.monitor.verdicts is not None or not (spec.engine.takes_token_ids or spec.engine.server):
        return spread
    differences = judge.differences_alone(_across_lengths(questions, spec.monitor.reasoning is not None))
    if not differences:
        return spread
    largest = max(differences)
    spread["largest"], spread["n"] = largest, len(differences)
    if kind == "reproducible" and largest > REPRODUCIBLE_WITHIN:
        _log.warning("scores are not reproducible on this machine: %s", _in_words(spread))
    else:
        _log.info("%s", _in_words(spread))
    return spread


def refuse_batch_dependent(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Raise `UserError` where the evaluation in `directory` has scores on which no threshold may stand."""
    precision = str(manifest["identity"]["judge"].get("dtype", ""))
    spread: ScoreSpread | None = manifest["results"].get("score_spread")
    largest = (spread and spread["largest"]) or 0.0
    if is_reproducible(precision) is False:
        raise UserError(
            f"{directory}: judged with engine.scores=fast, so that in {precision} a score depends on what "
            "its sample was batched with, and a threshold on it promises nothing; judge it again by the same "
            "`monitorbench evaluate` with engine.scores=reproducible"
        )
    if largest > REPRODUCIBLE_WITHIN:
        raise UserError(
            f"{directory}: scores moved by up to {largest:.2g} when samples were asked about alone (at most "
            f"{REPRODUCIBLE_WITHIN:g} is the same score), so a threshold on them promises nothing; judge it "
            "again by the same `monitorbench evaluate` with engine.dtype=float32"
        )


def _across_lengths(questions: Sequence[Question], is_slow: bool) -> list[Question]:
    """A few of the questions, from the shortest to the longest, which batches pad differently."""
    ordered = sorted(questions, key=lambda question: len(question.request.token_ids))
    most = 1 if is_slow else min(_MOST_ASKED_AGAIN, -(-len(ordered) // _SHARE_ASKED_AGAIN))
    return [ordered[i * len(ordered) // most] for i in range(most)] if ordered else []


def _in_words(spread: ScoreSpread) -> str:
    several = "1 sample" if spread["n"] == 1 else f"{spread['n']} samples"
    return (
        f"scores are {spread['scores']} ({spread['precision']}): asked about alone, {several} "
        f"differ by at most {spread['largest']:.1g}"
    )
