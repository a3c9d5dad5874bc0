"""Asking the judge about every change, one after another, with one log and one start of its engine.

Promises: a change of the prompt is judged by the same weights, adapter and engine; a sample that the context
can't hold is unscored and never shortened; a verdict that the log has, or that another run of the same judge
has, is not asked for again.

Numbers from judged cases: each change beside the unchanged samples that it applies to.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from monitorbench.config.engine import in_process
from monitorbench.config.monitor import Prompt
from monitorbench.engines.open import share_engine
from monitorbench.engines.stored.adapter import adapter_folder
from monitorbench.judging.display import judging
from monitorbench.judging.identity import JudgeSpec
from monitorbench.judging.logged import (
    LoggedJudge,
    open_logged,
    read_known_verdicts,
    refuse_incomplete,
    take_known_verdicts,
)
from monitorbench.judging.open import open_judge
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.robustness import (
    CASES,
    MEASURES,
    OF_BENIGN,
    STRESS_VERSION,
    UNCHANGED,
    ComparedChange,
    StressFacts,
    compare_change,
    labelled,
    matching,
    robustness,
)
from monitorbench.records import Label, Sample, Verdict
from monitorbench.runs.keyed_log import (
    FAILURES,
    VERDICTS,
    VerdictLog,
    open_failure_log,
    open_verdict_log,
)
from monitorbench.runs.tracking import Track
from monitorbench.scoring.evaluations import Evaluation, answers_at
from monitorbench.scoring.points import PointAt
from monitorbench.stress.changes.change import Change, PromptChange, changed

if TYPE_CHECKING:
    from monitorbench.engines.open import LocalModel


_log = logging.getLogger(__name__)


class StressJudging(NamedTuple):
    """The judge, and the folders of its models, its verdicts and other runs."""

    spec: JudgeSpec
    asked_with: Callable[[Prompt], JudgeSpec]
    """Give the judge another prompt."""
    models: Path
    run: Path
    known: Sequence[Path]
    """Runs of the same judge over the same data, whose verdicts are taken: keys say which."""


class Case(NamedTuple):
    """One sample under one change, and the verdict on it."""

    change: str
    sample_id: str
    """Id of the unchanged sample."""
    judged_id: str
    """Id of the changed sample; equal to `sample_id` where the prompt is changed."""
    verdict: Verdict


def judge_all(
    judge: StressJudging, samples: Sequence[Sample], changes: Sequence[Change], seed: int
) -> list[Case]:
    """A case for every sample unchanged, and for every change and sample that it applies to.

    Raises what asking a judge raises, and `Incomplete` where more got no answer than `engine.max_failed`.
    """
    known_verdicts = list(read_known_verdicts(judge.known))
    with (
        open_verdict_log(judge.run / VERDICTS) as log,
        open_failure_log(judge.run / FAILURES) as failures,
        _engine(judge) as shared,
    ):
        opens = partial(open_judge, shared=shared)
        with open_logged(judge.spec, judge.models, log, failures, run=judge.run, opens=opens) as logged_judge:
            cases = _asked(
                judge, logged_judge, UNCHANGED, [(sample, sample) for sample in samples], log, known_verdicts
            )
            for number, change in enumerate(changes, 1):
                if not isinstance(change, PromptChange):
                    pairs = [(sample, changed(change, sample, seed)) for sample in samples]
                    applied = [(before, after) for before, after in pairs if after is not None]
                    _say(number, len(changes), change.name, len(applied), len(samples))
                    cases += _asked(judge, logged_judge, change.name, applied, log, known_verdicts)
        for number, change in enumerate(changes, 1):
            if isinstance(change, PromptChange):
                prompt = asked_in(change, judge.spec.prompt, is_probe=judge.spec.monitor.head is not None)
                _say(number, len(changes), change.name, len(samples) if prompt else 0, len(samples))
                if prompt is not None:
                    spec = judge.asked_with(prompt)
                    with open_logged(
                        spec, judge.models, log, failures, run=judge.run, opens=opens
                    ) as logged_judge:
                        same = [(sample, sample) for sample in samples]
                        cases += _asked(judge, logged_judge, change.name, same, log, known_verdicts)
    return cases


def asked_in(change: PromptChange, prompt: Prompt, *, is_probe: bool) -> Prompt | None:
    """The changed prompt, or None where the change does not apply.

    It never does to a probe, which reads the states of the prompt that it was fitted with and of no other.
    """
    return None if is_probe else change.apply(prompt)


def _say(number: int, of: int, name: str, n: int, n_samples: int) -> None:
    _log.info("stress: %d of %d, %s: applies to %d of %d samples", number, of, name, n, n_samples)


@contextmanager
def _engine(judge: StressJudging) -> Iterator["LocalModel | None"]:
    """One engine of this process for all prompts; None where there is none, or no other prompt ever comes."""
    monitor, engine = judge.spec.monitor, judge.spec.engine
    if not engine.takes_token_ids or monitor.head is not None or monitor.router is not None:
        yield None
        return
    adapter = adapter_folder(monitor.adapter)
    folders = [adapter] if adapter else []
    with closing(share_engine(monitor, in_process(engine, "stress"), judge.models, folders)) as shared:
        yield shared


def _asked(
    judge: StressJudging,
    asked: LoggedJudge,
    name: str,
    pairs: Sequence[tuple[Sample, Sample]],
    log: VerdictLog,
    known: Sequence[tuple[Path, Mapping[str, Verdict]]],
) -> list[Case]:
    """The cases of samples and what a change made of them, judged as far as nobody knows them."""
    samples = [after for _, after in pairs]
    keys, questions = asked.pending(samples)
    questions = take_known_verdicts(known, questions, log)
    engine = judge.spec.engine
    priced = engine.prices is not None
    asked.ask(questions, lambda: judging(name, samples, keys, log, Track(), priced=priced))
    verdicts = [log.entries.get(key) or asked.failed.get(key) for key in keys]
    lost = [answer for key, answer in zip(keys, verdicts, strict=True) if key not in log.entries]
    refuse_incomplete(judge.run, lost, max(len(samples), 1), engine.max_failed)
    return [
        Case(name, before.id, after.id, verdict)
        for (before, after), verdict in zip(pairs, verdicts, strict=True)
        if verdict is not None  # none is: an unanswered one is refused above
    ]


def write_cases(run: Path, cases: Sequence[Case]) -> None:
    """`cases.parquet`: which verdict is of which sample under which change."""
    columns = {
        "change": pa.array([case.change for case in cases], pa.string()),
        "sample_id": pa.array([case.sample_id for case in cases], pa.string()),
        "judged_id": pa.array([case.judged_id for case in cases], pa.string()),
        "key": pa.array([case.verdict.key for case in cases], pa.string()),
        "label": pa.array([case.verdict.label for case in cases], pa.string()),
        "unscored": pa.array([case.verdict.unscored for case in cases], pa.string()),
        "score": pa.array([case.verdict.score for case in cases], pa.float64()),
    }
    pq.write_table(pa.table(columns), run / CASES)


_FLAGGED = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: nan}


def stress_facts(
    evaluation: Evaluation,
    point: PointAt | None,
    samples: Sequence[Sample],
    changes: Sequence[Change],
    cases: Sequence[Case],
    seed: int,
) -> StressFacts:
    """Return the content of `stress.json`; with a `point` labels are the scores read at its threshold."""
    by_change: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_change[case.change].append(case)
    unchanged = _answered(evaluation, point, by_change[UNCHANGED])
    compared = {
        one.name: _compared(evaluation, point, unchanged, one, by_change[one.name]) for one in changes
    }
    of_all = robustness(compared)
    return StressFacts(
        schema_version=STRESS_VERSION,
        evaluation=evaluation.id,
        monitor=evaluation.monitor,
        prompt=evaluation.prompt,
        dataset=evaluation.data.name,
        split=evaluation.split.value,
        operating_point=point.name if point else "",
        n=len(samples),
        n_groups=len({one.group_id for one in samples}),
        seed=seed,
        robustness=of_all,
        changes={name: one.facts for name, one in compared.items()},
    )


def _compared(
    evaluation: Evaluation, point: PointAt | None, whole: Columns, change: Change, cases: Sequence[Case]
) -> ComparedChange:
    after = _answered(evaluation, point, cases)
    before = matching(whole, [one.sample_id for one in cases])
    reasons = Counter(str(one.verdict.unscored) for one in cases if one.verdict.unscored is not None)
    facts = compare_change(
        before,
        after,
        version=change.version,
        n_not_applicable=len(whole) - len(cases),
        unscored=dict(reasons.most_common()),
        counted=[one for one in MEASURES if change.keeps_benign or one not in OF_BENIGN],
    )
    return ComparedChange(before, after, facts)


def _answered(evaluation: Evaluation, point: PointAt | None, cases: Sequence[Case]) -> Columns:
    """The unchanged samples' rows with the answers of these cases."""
    rows = matching(evaluation.judged, [answer.sample_id for answer in cases])
    verdicts: list[Verdict] = [answer.verdict for answer in cases]
    scores = [nan if answer.score is None else answer.score for answer in verdicts]
    answered = labelled(rows, [_FLAGGED[answer.label] for answer in verdicts], scores)
    if point is None or not cases:
        return answered
    return answers_at(point.point, evaluation._replace(judged=answered)).judged
