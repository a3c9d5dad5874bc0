"""`eval/gate.py`: freeze a monitor, check a frozen one, or compare a deployment's scores with frozen ones."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.ending import printable
from monitorbench.config.study import Study
from monitorbench.gate.answer import EXIT_CODES, GateAnswer, TestedChange, compare
from monitorbench.gate.freeze import freeze
from monitorbench.gate.frozen import Frozen, FrozenGate, add_look, read_frozen_gate, read_gate, read_looks
from monitorbench.gate.judged import JudgedAnchors, changed, from_run, gate_judge, judge_anew
from monitorbench.gate.traffic import DRIFT_EXIT_CODES, LastAnchors, compare_traffic, read_traffic
from monitorbench.interop.imports.conversations import lack_texts
from monitorbench.judging.serving.served import reach
from monitorbench.metrics.bootstrap import group_index
from monitorbench.records import reasons_in_words
from monitorbench.runs.directory import RunDirectory, read_checked
from monitorbench.runs.files import file_sha256, write_json
from monitorbench.runs.run_folders import run_name

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
    answer = {
        "answer": compared.word,
        "exit_code": EXIT_CODES[compared.word],
        "why": why,
        **_numbers(compared),
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


def _numbers(found: GateAnswer) -> dict[str, Any]:
    return {
        "n": found.n,
        "n_scored": found.n_scored,
        "look": found.look,
        "needed": found.needed,
        "has_moved": found.has_moved,
        "auroc": _tested(found.auroc),
        "miss_rate": _tested(found.miss_rate),
        "false_alarm_rate": _tested(found.false_alarm_rate),
        "promise": found.promise._asdict(),
    }


def _tested(one: TestedChange) -> dict[str, Any]:
    return {**one.change._asdict(), "state": one.state}


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
