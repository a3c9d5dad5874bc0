"""`eval/gate.py`: freeze a monitor, check a frozen one, or compare a deployment's scores with frozen ones.

The anchors are always asked anew, since an endpoint's model may have changed behind its name: what another
run answered to the same question is not taken over, however much it has in common. A model that changes while
it is asked is what a check is there to find: every answer counts, and the names are reported.
"""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import monitorbench
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.ending import printable
from monitorbench.config.engine import Engine, of_any_version, refuse_fast_scores
from monitorbench.config.monitor import Monitor
from monitorbench.config.study import Prompt, Study
from monitorbench.gate.answer import EXIT_CODES, GateAnswer, PromiseTested, compare
from monitorbench.gate.change import NumberChange
from monitorbench.gate.freeze import freeze
from monitorbench.gate.frozen import Frozen, FrozenGate, add_look, read_frozen_gate, read_gate, read_looks
from monitorbench.gate.traffic import DRIFT_EXIT_CODES, LastAnchors, compare_traffic, read_traffic
from monitorbench.interop.imports.conversations import lack_texts
from monitorbench.judging.display import judging
from monitorbench.judging.evaluate import judge_name
from monitorbench.judging.identity import RECORDED_PROMPT, JudgeSpec, judge_spec
from monitorbench.judging.logged import open_logged, served_models
from monitorbench.judging.recorded import check_verdicts
from monitorbench.judging.serving.served import reach
from monitorbench.metrics.bootstrap import FloatArray, group_index
from monitorbench.records import Sample, reasons_in_words
from monitorbench.runs.directory import RunDirectory, read_checked, read_finished
from monitorbench.runs.files import file_sha256, write_json
from monitorbench.runs.keyed_log import FAILURES, VERDICTS, open_failure_log, open_verdict_log
from monitorbench.runs.run_folders import run_name
from monitorbench.runs.tracking import Track
from monitorbench.scoring.evaluations import read_evaluation


class JudgedAnchors(NamedTuple):
    """The anchors' scores as the judge gives them now."""

    scores: FloatArray
    """[samples], NaN where unscored."""
    unscored: dict[str, int]
    """How many anchors have no score for which reason; `no_score`: a label alone, which is not read."""
    served_models: tuple[str, ...]
    monitorbench: str
    """The version whose parser read the answers."""
    cost: float


def gate_judge(engine: Engine, monitor: Monitor, prompt: Prompt) -> JudgeSpec:
    """The configured judge; runs no model.

    Raises `ConfigError` for one that reads other samples first, and for one whose scores depend on the batch.
    """
    refuse_fast_scores(engine, "a gate applies")
    if prompt.shots:
        raise ConfigError(
            f"prompt={prompt.name}: its examples are of a training split, which a gate does not have; "
            "expected a prompt without (prompt.shots=0)"
        )
    if monitor.router is not None:
        raise ConfigError(
            "monitor.router: learns from a training split, which a gate does not have; expected null"
        )
    return judge_spec(monitor, engine, RECORDED_PROMPT if monitor.verdicts else prompt)


def judge_anew(
    engine: Engine, monitor: Monitor, models: Path, spec: JudgeSpec, samples: list[Sample], run: Path
) -> JudgedAnchors:
    """Ask about every anchor; the verdicts are in `run`'s logs.

    Raises what `judging.logged.open_logged` and `LoggedJudge.ask` raise. A request that fails is unscored.
    """
    engine.api_key()  # what is missing is an error before anything is asked
    if monitor.verdicts is not None:
        check_verdicts(monitor.verdicts, monitor.read_as, samples)
    title, priced = f"{judge_name(monitor, engine)}, {spec.prompt.title}", engine.prices is not None
    # An endpoint may answer by another version of its model at any time.
    any_version = spec._replace(engine=of_any_version(spec.engine))
    with (
        open_verdict_log(run / VERDICTS) as log,
        open_failure_log(run / FAILURES) as failures,
        open_logged(any_version, models, log, failures, run=run) as judge,
    ):
        keys, questions = judge.pending(samples)
        judge.ask(questions, lambda: judging(title, samples, keys, log, Track(), priced=priced))
        verdicts = [log.entries.get(key) or judge.failed.get(key) for key in keys]
        scores = [None if verdict is None else verdict.score for verdict in verdicts]
        lost = [verdict for verdict in verdicts if verdict is None or verdict.score is None]
        # An answer that is no label may have a score.
        reasons = Counter("not_asked" if of is None else str(of.unscored or "no_score") for of in lost)
        return JudgedAnchors(
            scores=np.array(scores, dtype=np.float64),
            unscored=dict(reasons),
            served_models=tuple(served_models(log)),
            monitorbench=monitorbench.__version__,
            cost=judge.spent,
        )


def from_run(datasets: Path, directory: Path, samples: list[Sample]) -> tuple[JudgedAnchors, dict[str, Any]]:
    """The scores of a finished evaluation, and its judge, in place of asking: a combination has no other.

    Raises `UserError` where the run judged another split than the anchors'.
    """
    evaluation = read_evaluation(datasets, directory)
    judged = evaluation.judged
    ids = judged.sample_ids.to_pylist()
    score_of = dict(zip(ids, judged.scores.tolist(), strict=True))
    if missing := [sample.id for sample in samples if sample.id not in score_of]:
        raise UserError(
            f"{directory}: judged {len(samples) - len(missing)} of {len(samples)} anchors; expected a run "
            "over the split that they are from"
        )
    scores = np.array([score_of[sample.id] for sample in samples], dtype=np.float64)
    reason_of = dict(zip(ids, evaluation.reasons.to_pylist(), strict=True))
    lost = [sample.id for sample, score in zip(samples, scores, strict=True) if np.isnan(score)]
    manifest = read_finished(directory)
    served = tuple(manifest["results"].get("served_models") or ())
    reasons = Counter(str(reason_of[name] or "no_score") for name in lost)
    version = str(manifest["versions"]["monitorbench"])
    return JudgedAnchors(scores, dict(reasons), served, version, 0.0), dict(manifest["identity"]["judge"])


def changed(frozen: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Differences of a judge's identity: by dotted key the frozen value and the present one."""
    changes: dict[str, tuple[Any, Any]] = {}
    for key in sorted({*frozen, *now}):
        before, after = frozen.get(key), now.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            changes |= {f"{key}.{inner}": pair for inner, pair in changed(before, after).items()}
        elif before != after:
            changes[key] = (before, after)
    return changes


ANSWER = "answer.json"
_CODES = EXIT_CODES | DRIFT_EXIT_CODES
_MILDEST_FIRST = ("PASS", "NO_DRIFT", "INCONCLUSIVE", "DRIFTED", "THRESHOLD_STALE", "DEGRADED")
"""Answers, the mildest first: shown, not shown, a drift (which need not be a failure), a failure."""


def gate(study: Study) -> Path:
    """Freeze or check, as the settings ask; returns the run directory. Prints the answer in a line."""
    if study.gate.file is None:
        return freeze(study)
    if study.operating_point is not None:
        raise ConfigError(
            f"operating_point={study.operating_point}: gate.file={study.gate.file} has its own; expected null"
        )
    if study.gate.traffic is not None:
        return _drift(study, study.gate.file, study.gate.traffic)
    return _check(study, study.gate.file)


def exit_code(run: Path) -> int:
    """Exit code of the process: 0 for a gate that was frozen, else the answer's."""
    return int(read_checked(run, ANSWER)["exit_code"]) if (run / ANSWER).is_file() else 0


def worst_exit_code(runs: Sequence[Path]) -> int:
    """Exit code of a process with several runs: that of the most severe answer, not the highest."""
    mildest_first = [_CODES[word] for word in _MILDEST_FIRST]
    return max(map(exit_code, runs), key=mildest_first.index, default=0)


def _check(study: Study, file: Path) -> Path:
    frozen = read_frozen_gate(file)
    identity = {"gate": file_sha256(file), "asked": datetime.now(UTC).isoformat()}
    name = run_name(frozen.gate.monitor, frozen.gate.prompt, "check")
    if study.run is not None:
        run = RunDirectory(study.paths.runs / "gate", name, identity)
        with run.recording(study) as results:
            results |= _write(run.path, file, frozen, *from_run(study.paths.data, study.run, frozen.samples))
        return _said(run.path)
    if lack_texts(frozen.samples):
        raise ConfigError(
            f"gate.file={file}: its anchors were imported without texts, so that no model can be asked about "
            "them; expected run=RUN, an evaluation or an import of their new scores"
        )
    study = reach(study)
    spec = gate_judge(study.engine, study.monitor, study.prompt)
    run = RunDirectory(study.paths.runs / "gate", name, {**identity, "judge": spec.identity})
    with run.recording(study) as results:
        now = judge_anew(study.engine, study.monitor, study.paths.models, spec, frozen.samples, run.path)
        results |= _write(run.path, file, frozen, now, dict(spec.identity))
    return _said(run.path)


def _write(
    run: Path, file: Path, frozen: Frozen, now: JudgedAnchors, judge: dict[str, Any]
) -> dict[str, Any]:
    """Write `answer.json` and add the look to those at the gate; what of it the manifest repeats."""
    promise, rules = frozen.gate.promise, frozen.gate.tolerated
    earlier = np.array([look.scores for look in read_looks(file, "anchors")], dtype=np.float64)
    scores = frozen.scores(now.scores, earlier)
    compared = compare(scores, rules, alpha=promise.alpha, alpha_applies=promise.applies)
    of_judge, around = changed(frozen.gate.judge, judge), _around(frozen.gate, now)
    differs = of_judge | around
    why = "; ".join([compared.why, *_besides(now, compared, list(of_judge), around)])
    numbers = {
        name: value._asdict() if isinstance(value, NumberChange | PromiseTested) else value
        for name, value in compared._asdict().items()
        if name not in ("word", "why")
    }
    answer = {
        "answer": compared.word,
        "exit_code": EXIT_CODES[compared.word],
        "why": why,
        **numbers,
        "unscored": now.unscored,
        "changed": {key: {"frozen": before, "now": after} for key, (before, after) in differs.items()},
        "served_models": {"frozen": list(frozen.gate.served_models), "now": list(now.served_models)},
        "cost": now.cost,
    }
    write_json(run / ANSWER, answer)
    add_look(file, "anchors", now.scores, has_moved=compared.has_moved)
    return {key: answer[key] for key in ("answer", "exit_code", "why")}


def _around(frozen: FrozenGate, now: JudgedAnchors) -> dict[str, tuple[Any, Any]]:
    """Differences besides the judge that was asked for: who answered, and what read the answers.

    Where nobody was named when it was frozen, two names now still are a change.
    """
    changes: dict[str, tuple[Any, Any]] = {}
    before, after = sorted(frozen.served_models), sorted(now.served_models)
    if after and before != after and (before or len(after) > 1):
        changes["served_models"] = (before, after)
    if frozen.monitorbench != now.monitorbench:
        changes["monitorbench"] = (frozen.monitorbench, now.monitorbench)
    return changes


def _besides(
    now: JudgedAnchors, found: GateAnswer, of_judge: list[str], around: dict[str, tuple[Any, Any]]
) -> list[str]:
    """Remarks at the end of the line."""
    notes = []
    if found.n_scored < found.n and now.unscored:
        notes.append(f"unscored: {reasons_in_words(now.unscored)}")
    if of_judge:
        notes.append(f"not the judge that was frozen: {', '.join(of_judge)} changed")
    if "served_models" in around:
        before, after = (", ".join(names) for names in around["served_models"])
        notes.append(f"answered by {after}, frozen with {before or 'a model that was not named'}")
    if "monitorbench" in around:
        before, after = around["monitorbench"]
        notes.append(f"frozen by monitorbench {before}, checked by {after}")
    return notes


def _drift(study: Study, file: Path, traffic: Path) -> Path:
    if study.run is not None:
        raise ConfigError(f"run={study.run}: gate.traffic compares scores without labels; expected run=null")
    frozen = read_gate(file)
    if frozen.traffic is None:
        raise UserError(f"{file}: no traffic was frozen with it; expected one frozen with gate.traffic=FILE")
    now = read_traffic(traffic)
    asked = datetime.now(UTC).isoformat()
    identity = {"gate": file_sha256(file), "traffic": file_sha256(traffic), "asked": asked}
    name = run_name(frozen.monitor, frozen.prompt, "traffic")
    run = RunDirectory(study.paths.runs / "gate", name, identity)
    with run.recording(study) as results:
        looks, anchors = read_looks(file, "traffic"), read_looks(file, "anchors")
        last = None
        if anchors:
            samples = read_frozen_gate(file).samples
            before = np.array([frozen.anchors.scores[sample.id] for sample in samples], dtype=np.float64)
            now_anchors = np.array(anchors[-1].scores, dtype=np.float64)
            groups = group_index([sample.group_id for sample in samples])
            last = LastAnchors(before, now_anchors, groups, anchors[-1].has_moved)
        level = frozen.tolerated.drift_level
        compared = compare_traffic(frozen.traffic, now, last, level=level, look=len(looks) + 1)
        facts = compared._asdict()
        answer = {"answer": facts.pop("word"), "exit_code": DRIFT_EXIT_CODES[compared.word], **facts}
        write_json(run.path / ANSWER, answer)
        add_look(file, "traffic")
        results |= {key: answer[key] for key in ("answer", "exit_code", "why")}
    return _said(run.path)


def _said(run: Path) -> Path:
    """Print the answer."""
    answer = json.loads((run / ANSWER).read_text(encoding="utf-8"))
    print(printable(f"{answer['answer']}: {answer['why']}"), flush=True)
    return run
