"""The stage `stress`: an evaluation's judge is asked again about changed samples.

Writes a run below `runs/stress/`: `verdicts.jsonl` and `failures.jsonl` as an evaluation has them,
`cases.parquet` (which verdict is of which sample under which change) and `stress.json`. Interrupted, the same
command goes on with what is missing; verdicts that the evaluation has, or another stress run of the same
judge over the same data, are taken from there.

Every change, in the order in which it is tried and shown.
"""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from monitorbench.cells import Cell
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import Engine, with_limits_of
from monitorbench.config.load import did_you_mean, read_frozen
from monitorbench.config.monitor import Prompt
from monitorbench.config.study import Paths, Study
from monitorbench.config.terminal import opened
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.judging.identity import JudgeSpec, judge_spec
from monitorbench.judging.logged import runs_of_the_same_judge
from monitorbench.judging.serving.served import reach
from monitorbench.metrics.robustness import FILE, STRESS_VERSION, as_stress
from monitorbench.records import Label, Sample
from monitorbench.report.stress import print_stress
from monitorbench.runs.directory import RunDirectory, read_checked, read_manifest
from monitorbench.runs.files import write_json
from monitorbench.runs.run_folders import dataset_name, run_name
from monitorbench.scoring.evaluations import Evaluation, read_covered
from monitorbench.scoring.points import PointAt, points_at
from monitorbench.stress.changes.change import Change, family
from monitorbench.stress.changes.code import CODE
from monitorbench.stress.changes.insertions import INJECTIONS, OWN_WORDS, PADDING, TURNS, among_turns
from monitorbench.stress.changes.options import OPTIONS
from monitorbench.stress.changes.prose import LOOKALIKES, PARAPHRASES
from monitorbench.stress.judged import StressJudging, judge_all, stress_facts, write_cases

CHANGES: tuple[Change, ...] = (
    *INJECTIONS,
    *PADDING,
    *OPTIONS,
    *OWN_WORDS,
    *PARAPHRASES,
    *CODE,
    *LOOKALIKES,
)
"""Changes that `all` stands for."""
BY_NAME = (*CHANGES, *TURNS)
"""With those that are tried only where they are named: texts that few judges' contexts hold."""
EVERYTHING = "all"


def chosen(names: Sequence[str]) -> list[Change]:
    """The changes of these names, families (`padding`) or parts of them (`padding.2k`), in the order of all.

    Raises `ConfigError` for a name that is of none.
    """
    wanted: set[str] = set()
    for name in names:
        matches = {
            change.name
            for change in (CHANGES if name == EVERYTHING else BY_NAME)
            if name == EVERYTHING or f"{change.name}.".startswith(f"{name}.")
        }
        if not matches:
            candidates = [
                *dict.fromkeys(family(change.name) for change in BY_NAME),
                *(change.name for change in BY_NAME),
            ]
            families = ", ".join(dict.fromkeys(family(change.name) for change in BY_NAME))
            near = did_you_mean(name, candidates, "") or f"expected {EVERYTHING} or one of {families}"
            raise ConfigError(f"stress.changes={name}: no such change; {near}")
        wanted |= matches
    return [change for change in BY_NAME if change.name in wanted]


_log = logging.getLogger(__name__)


def stress(study: Study) -> Path:
    """Judge the samples of the evaluation `study.run` anew under `study.stress.changes`; returns the run.

    Raises `ConfigError` for a change that there is none of, `UserError` where the run is no evaluation by a
    judge that can be asked again, and what `evaluate` raises; `Incomplete` where answers are missing.
    """
    changes = chosen(study.stress.changes)
    directory = study.required_run()
    evaluation = read_covered(study.paths.data, directory, study.score.min_coverage)
    wanted = [study.operating_point] if study.operating_point else []
    points = points_at(wanted, [evaluation], other_dataset=study.score.other_dataset)
    judged = as_judged(study.engine, study.paths, directory)
    run = _run(study.seed, study.stress.pairs_per_cell, study.paths.runs, evaluation, changes, points)
    if not run.done:
        _judge(study, judged, evaluation, changes, points, run)
    else:
        _log.info("stress: reusing %s", run.path)
    print_stress(opened(), as_stress(read_checked(run.path, FILE)))
    return run.path


def as_judged(engine: Engine, paths: Paths, directory: Path) -> Study:
    """The study by which an evaluation was judged, with the limits of this engine and with these paths.

    Raises `UserError` where nothing can be asked again: recorded verdicts, and what was made of other runs.
    """
    manifest = read_manifest(directory)
    before = read_frozen(directory / "config.json")
    if "combined" in manifest["results"] or before.monitor.verdicts is not None:
        raise UserError(
            f"{directory}: its verdicts were recorded or combined, so nobody can be asked again; expected an "
            "evaluation by a model, a probe or an endpoint"
        )
    return reach(before.model_copy(update={"paths": paths, "engine": _engine(before.engine, engine)}))


def _engine(judged_by: Engine, typed: Engine) -> Engine:
    """The evaluation's engine; what decides no verdict is this command's where it names the same endpoint."""
    engine = with_limits_of(judged_by, typed)
    if engine is None:
        _log.warning(
            "stress: engine=%s of this command is not used: the judge is the evaluation's, behind engine=%s",
            typed.kind,
            judged_by.kind,
        )
        return judged_by
    return engine


def _judge(
    study: Study,
    judged: Study,
    evaluation: Evaluation,
    changes: list[Change],
    points: list[PointAt],
    run: RunDirectory,
) -> None:
    planned = planned_evaluation(judged, evaluation.data)
    spec = planned.judge
    if planned.run.identity["judge"] != read_manifest(evaluation.directory)["identity"]["judge"]:
        _log.warning(
            "stress: the judge here is not exactly that of %s (as in its dtype): the unchanged samples are "
            "judged anew",
            evaluation.directory,
        )

    def asked_with(prompt: Prompt) -> JudgeSpec:
        # Shortened to fit, a changed text may have lost the very response.
        uncut = prompt.model_copy(update={"too_long": "unscored"})
        return judge_spec(spec.monitor, spec.engine, uncut, spec.shots, spec.route)

    judging = StressJudging(
        spec=asked_with(spec.prompt),
        asked_with=asked_with,
        models=study.paths.models,
        run=run.path,
        known=[evaluation.directory, *runs_of_the_same_judge(run, "evaluation")],
    )
    judged.engine.api_key()
    everything = read_split(evaluation.data, evaluation.split, evaluation.view)
    samples = drawn(study.stress.pairs_per_cell, everything)
    in_turns = {change.name: change for change in among_turns(everything)}
    changes = [in_turns.get(change.name, change) for change in changes]
    with run.recording(study) as results:
        cases = judge_all(judging, samples, changes, study.seed)
        write_cases(run.path, cases)
        facts = stress_facts(evaluation, points[0] if points else None, samples, changes, cases, study.seed)
        write_json(run.path / FILE, facts)
        results |= {
            "evaluation": evaluation.id,
            "monitor": evaluation.monitor,
            "prompt": evaluation.prompt,
            "data": evaluation.data.name,
            "n": len(samples),
            "n_judged": len(cases),
            "robustness": facts["robustness"],
        }


def drawn(pairs_per_cell: int, samples: Sequence[Sample]) -> list[Sample]:
    """Draw from the samples of each cell and label that the evaluation judged, by content hash.

    They are the first `stress.pairs_per_cell` pairs; if there are fewer, samples without a counterpart too.
    """
    units: defaultdict[tuple[Cell, Label], set[str]] = defaultdict(set)
    for one in samples:
        units[one.cell, one.label].add(one.pair_id or one.id)
    first: dict[tuple[Cell, Label], set[str]] = {}
    for (cell, label), ids in units.items():
        paired = set.intersection(*(units.get((cell, one), set()) for one in Label))
        ordered = sorted(ids, key=lambda one: (one not in paired, hashlib.sha256(one.encode()).digest()))
        first[cell, label] = set(ordered[:pairs_per_cell])
    return [one for one in samples if (one.pair_id or one.id) in first[one.cell, one.label]]


def _run(
    seed: int,
    pairs_per_cell: int,
    runs: Path,
    evaluation: Evaluation,
    changes: list[Change],
    points: list[PointAt],
) -> RunDirectory:
    identity = {
        "version": STRESS_VERSION,
        "evaluation": read_manifest(evaluation.directory)["identity"],
        "data": evaluation.data.name,
        "changes": {change.name: change.version for change in changes},
        "pairs_per_cell": pairs_per_cell,
        "seed": seed,
    }
    if points:
        identity["operating_point"] = points[0].point.model_dump(mode="json")
    name = run_name(evaluation.monitor, evaluation.prompt, dataset_name(evaluation.data.name))
    return RunDirectory(runs / "stress", name, identity)
