"""Numbers from judged cases: each change beside the unchanged samples that it applies to."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import nan

from monitorbench.metrics.columns import Columns
from monitorbench.metrics.robustness.compare import MEASURES, OF_BENIGN, compare_change, labelled, matching
from monitorbench.metrics.robustness.worst import (
    STRESS_VERSION,
    UNCHANGED,
    ComparedChange,
    StressFacts,
    robustness,
)
from monitorbench.records import Label, Sample, Verdict
from monitorbench.scoring.evaluations import Evaluation
from monitorbench.scoring.operating_point import answers_at
from monitorbench.scoring.points import PointAt
from monitorbench.stress.changes.change import Change
from monitorbench.stress.judged import Case

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
