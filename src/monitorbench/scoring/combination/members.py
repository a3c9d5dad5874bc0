"""Members of a combination: judges' finished runs over a split, and baselines, which need none.

Promises: all members judged the same samples of one dataset; no member is a combination itself, and none is
there twice; a baseline is fitted on the train split alone, takes no tokens, and its time is not counted.
"""

import hashlib
import importlib.metadata
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.evaluation import Baseline
from monitorbench.corpus.store import read_split
from monitorbench.judging.reproducible import refuse_batch_dependent
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.score_facts import inverted_warning
from monitorbench.metrics.table import NO_PROMPT
from monitorbench.records import Label, Sample, Split, Verdict
from monitorbench.runs.directory import read_finished
from monitorbench.runs.files import content_hash
from monitorbench.runs.keyed_log import VERDICTS, read_run
from monitorbench.scoring.baselines import BASELINES_VERSION, THRESHOLD, fitted_scores, train_samples
from monitorbench.scoring.calibrate import judge_id
from monitorbench.scoring.evaluations import Evaluation, read_covered

_READ_AT_ONCE = 2000
"""Samples whose features are in memory together."""
_log = logging.getLogger(__name__)


class Member(NamedTuple):
    """One judge over one split: its verdicts and scores [samples], in the samples' order."""

    monitor: str
    prompt: str
    """`none` of a baseline."""
    seed: int | None
    source: str
    """The folder of its run, or the baseline's name."""
    content: str
    """A hash of what it said, or of all that decides it."""
    verdicts: list[Verdict]
    scores: FloatArray


class SplitMembers(NamedTuple):
    """One split, and the members over it by `judge_id`."""

    split: Split
    view: SplitView
    data: Path
    """The dataset's directory."""
    samples: list[Sample]
    members: dict[str, Member]


def runs_over(split: Split, directories: Sequence[Path], datasets: Path, min_coverage: float) -> SplitMembers:
    """The runs in these directories, all over `split` of one dataset.

    Raises `ConfigError` where there is none, `UserError` for a run of another split or of other samples, for
    one judge twice, for a combination, and for a run without scores.
    """
    key = f"combine.{split}"
    if not directories:
        raise ConfigError(f"{key}=[]: no run given; expected finished runs over it as {key}=[DIR,DIR]")
    views: list[SplitView] = []
    runs: dict[str, Evaluation] = {}
    for directory in directories:
        run = read_covered(datasets, directory, min_coverage)
        manifest = read_finished(directory)
        if run.split is not split:
            raise UserError(f"{directory}: judged the {run.split} split; {key} takes runs over {split}")
        refuse_batch_dependent(directory, manifest)
        if "combined" in manifest["results"]:
            raise UserError(f"{directory}: a combination itself; combine the runs it was made of")
        if judge_id(run) in runs:
            raise UserError(f"{directory}: {judge_id(run)} is there twice in {key}; expected one run a judge")
        judged = run.judged
        if warning := inverted_warning(run.monitor, judged.scores, judged.is_misbehavior, judged.groups):
            _log.warning("combine: %s", warning)
        runs[judge_id(run)] = run
        views.append(SplitView.model_validate_json(json.dumps(manifest["identity"]["view"])))
        if (run.data, views[-1]) != (next(iter(runs.values())).data, views[0]):
            raise UserError(
                f"{directory}: judged other samples of the {split} split than {directories[0]}; expected "
                f"one dataset and the same settings of dataset.{split}"
            )
    data = next(iter(runs.values())).data
    samples = read_split(data, split, views[0])
    members = {name: _member(member_run, samples) for name, member_run in runs.items()}
    return SplitMembers(split, views[0], data, samples, members)


def with_baselines(
    names: Sequence[Baseline], calibration: SplitMembers, test: SplitMembers
) -> tuple[SplitMembers, SplitMembers]:
    """Both splits of one dataset with these baselines in front of the runs.

    Each is fitted once, on at most 3,000 samples of a cell. Raises `UserError` where the train split is
    missing or has one label only.
    """
    if not names:
        return calibration, test
    train = train_samples(test.data)
    _log.info("combine: fitting %s on %d samples of the train split", ", ".join(names), len(train))
    everything = [*calibration.samples, *test.samples]
    batches = (everything[i : i + _READ_AT_ONCE] for i in range(0, len(everything), _READ_AT_ONCE))
    fitted = fitted_scores(train, batches, names)
    if not fitted:
        raise UserError(
            f"combine.baselines=[{','.join(names)}]: {test.data} has no train split with both labels to fit "
            "them on; build one (`monitorbench build`), or expected combine.baselines=[]"
        )
    n = len(calibration.samples)
    sides: list[dict[str, Member]] = [{}, {}]
    for name in names:
        decided_by = baseline_hash(name, test.data)
        for side, samples, scores in (
            (sides[0], calibration.samples, fitted[name][:n]),
            (sides[1], test.samples, fitted[name][n:]),
        ):
            side[f"{name}/{NO_PROMPT}/{decided_by}"] = _baseline(name, decided_by, samples, scores)
    return (
        calibration._replace(members=sides[0] | calibration.members),
        test._replace(members=sides[1] | test.members),
    )


def baseline_hash(name: Baseline, data: Path) -> str:
    """Hash what decides a baseline's scores: the train split that it is fitted on, and what fits it."""
    splits = read_finished(data)["results"]["splits"]
    return content_hash(
        {
            "baseline": name,
            "data": data.name,
            "train": splits[Split.TRAIN.value],
            "version": BASELINES_VERSION,
            "versions": {
                package: importlib.metadata.version(package) for package in ("numpy", "scipy", "scikit-learn")
            },
        }
    )


def _member(run: Evaluation, samples: Sequence[Sample]) -> Member:
    by_sample = read_run(run.directory)
    verdicts = [by_sample[sample.id] for sample in samples]
    scores = run.judged.scores  # of an imported monitor, missing ones as its import says
    if np.isnan(scores).all():
        raise UserError(f"{run.directory}: no verdict has a score; combine judges with log-probabilities")
    content = hashlib.sha256((run.directory / VERDICTS).read_bytes()).hexdigest()
    return Member(run.monitor, run.prompt, run.seed, run.directory.name, content, verdicts, scores)


def _baseline(name: Baseline, decided_by: str, samples: Sequence[Sample], scores: FloatArray) -> Member:
    verdicts = [
        Verdict(
            key=content_hash([decided_by, sample.id]),
            sample_id=sample.id,
            prompt=NO_PROMPT,
            answer="",
            label=Label.MISBEHAVIOR if score >= THRESHOLD else Label.BENIGN,
            unscored=None,
            score=score,
            label_mass=None,
            finish_reason="",
            prompt_tokens=0,
            completion_tokens=0,
            seconds=0.0,
        )
        for sample, score in zip(samples, scores.tolist(), strict=True)
    ]
    return Member(name, NO_PROMPT, None, name, decided_by, verdicts, scores)
