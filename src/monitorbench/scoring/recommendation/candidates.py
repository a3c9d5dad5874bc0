"""What is chosen from: each monitor's run over the calibration split beside its run over the test split.

Promises: the two are of one judge; all runs are over one dataset, and over the same test samples.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import ConfigError, UserError
from monitorbench.records import Split
from monitorbench.scoring.calibrate import judge_id
from monitorbench.scoring.evaluations import Evaluation, read_covered, with_distinct_names


class CandidateRuns(NamedTuple):
    """One monitor over both splits; both have its name."""

    calibration: Evaluation
    test: Evaluation

    @property
    def monitor(self) -> str:
        """Its name."""
        return self.test.monitor

    @property
    def prompt(self) -> str:
        """How it was asked."""
        return self.test.prompt


def pairs_of(runs: tuple[Path, ...], datasets: Path, min_coverage: float) -> list[CandidateRuns]:
    """The monitors of `study.recommend.runs`, in the order of their test runs.

    Raises `ConfigError` where no run is given, `UserError` for a run over another split, for a monitor with a
    run over one of both splits only, and where the runs are of several datasets or of other test samples.
    """
    if not runs:
        raise ConfigError(
            "recommend.runs=[]: nothing to choose from; expected finished evaluation runs, of each monitor "
            "one over the calibration split and one over the test split"
        )
    found = [read_covered(datasets, one, min_coverage) for one in runs]
    _refuse_several_datasets(found)
    calibrations = _by_judge(found, Split.CALIBRATION)
    tests = _by_judge(found, Split.TEST)
    for one in found:
        if one.split not in (Split.CALIBRATION, Split.TEST):
            raise UserError(
                f"recommend.runs: {one.directory} judged the {one.split} split; expected runs over the "
                "calibration and the test split"
            )
        other = tests if one.split is Split.CALIBRATION else calibrations
        if one.judge_hash not in other:
            lacks = "test" if other is tests else "calibration"
            raise UserError(
                f"recommend.runs: no run of {judge_id(one)} over the {lacks} split beside {one.directory}; "
                "expected both, of the same judge (eval/evaluate.py evaluate.split=...)"
            )
    named = with_distinct_names(list(tests.values()))
    first = named[0]
    for one in named:
        if not one.judged.sample_ids.equals(first.judged.sample_ids):
            raise UserError(
                f"recommend.runs: {one.directory} judged other samples of the test split than "
                f"{first.directory}; expected the same settings of dataset.test"
            )
    return [CandidateRuns(calibrations[one.judge_hash]._replace(monitor=one.monitor), one) for one in named]


def _refuse_several_datasets(found: Sequence[Evaluation]) -> None:
    names: dict[Path, Path] = {}
    for one in found:
        names.setdefault(one.data, one.directory)
    if len(names) > 1:
        (first, at), (second, there) = list(names.items())[:2]
        raise UserError(
            f"recommend.runs: {at} judged {first.name}, {there} judged {second.name}; expected one dataset"
        )


def _by_judge(found: Sequence[Evaluation], split: Split) -> dict[str, Evaluation]:
    kept: dict[str, Evaluation] = {}
    for one in found:
        if one.split is split:
            if (before := kept.get(one.judge_hash)) is not None:
                raise UserError(
                    f"recommend.runs: {before.directory} and {one.directory} are both of {judge_id(one)} "
                    f"over the {split} split; expected one"
                )
            kept[one.judge_hash] = one
    return kept
