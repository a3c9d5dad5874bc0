"""The trials: each in a child process with a time limit, and what their results say together."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.load import freeze
from monitorbench.config.study import Study
from monitorbench.doctor.check import Check

SAME_LOSS = 0.05
"""Nats by which two loaders' first losses may differ in bfloat16, whose rounding they place differently."""
SAME_SCORE = {"float32": 0.01, "bfloat16": 0.1}
"""By which two engines' scores of one sample may differ."""

HALF_ON = 0.25
"""The share by which an adapter's change of a log-probability may differ: some of its layers are not on."""


class ChildResult(NamedTuple):
    """What a child came back with, or why it did not."""

    result: Mapping[str, Any]
    """Empty where it failed."""
    failure: str
    """One line; empty where it did not fail."""


def run_trial(name: str, study: Study, folder: Path, seconds: float) -> ChildResult:
    """Run one trial of `doctor.child` and wait for it; it and its workers end with it."""
    frozen = folder / "study.json"
    frozen.write_text(freeze(study))
    command = [sys.executable, "-m", "monitorbench.doctor.child", name, str(frozen), str(folder)]
    log = folder / f"{name}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return ChildResult({}, f"not done after {seconds:g} s (doctor.seconds)")
        finally:
            _end_group(process)
    if code == 0:
        return ChildResult(json.loads((folder / f"{name}.json").read_text()), "")
    return ChildResult({}, last_line(log) or f"exit code {code}")


def last_line(log: Path) -> str:
    """The error that a child ended with: the last line of its log that names one, else its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line.split(" ")[0]]
    return next(iter(reversed(errors or lines)), "")[:240]


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def imports_check(trial: ChildResult) -> Check:
    """Whether every module of the environment can be imported."""
    if trial.failure:
        return Check("imports", "failed", trial.failure, "see the log that is named below")
    failed: Mapping[str, str] = trial.result["failed"]
    if failed:
        found = "; ".join(f"{name}: {why}" for name, why in failed.items())
        return Check("imports", "failed", found[:400], "install what the lock says (the line `versions`)")
    return Check("imports", "ok", f"{', '.join(trial.result['modules'])} ({trial.result['seconds']:.0f} s)")


def step_check(name: str, trial: ChildResult) -> Check:
    """Whether some steps could be trained, and the adapter changes answers."""
    if trial.failure:
        return Check(
            name, "failed", trial.failure, f"training.loader={name.partition(' ')[0].lower()} fails here"
        )
    losses = trial.result["losses"]
    found = f"{len(losses)} steps, loss {losses[0]:.3f} -> {losses[-1]:.3f}, {trial.result['dtype']}"
    found += f" on {trial.result['device']} ({trial.result['seconds']:.0f} s)"
    if not losses[-1] < losses[0]:  # also where it is nan
        return Check(name, "failed", found, "the loss does not fall: don't train on this machine")
    return Check(name, "ok", found)


def same_loss_check(ours: ChildResult, theirs: ChildResult) -> Check:
    """Whether Unsloth's first loss is Transformers'."""
    name = "same loss"
    if ours.failure or theirs.failure:
        return Check(name, "skipped", "one of the two did not train")
    one, other = ours.result["losses"][0], theirs.result["losses"][0]
    found = f"first step: Transformers {one:.4f}, Unsloth {other:.4f}"
    if not abs(one - other) <= SAME_LOSS:
        return Check(name, "failed", found, "train with training.loader=transformers, and report this")
    return Check(name, "ok", found)


def verdict_check(name: str, trial: ChildResult) -> Check:
    """Whether an engine judges with the adapter on."""
    if trial.failure:
        return Check(name, "failed", trial.failure, "this engine can't be used here: see the log named below")
    found = f"{len(trial.result['scores'])} samples, {trial.result['dtype']}"
    found += f", adapter moves a logprob by {trial.result['change']:.2g} ({trial.result['seconds']:.0f} s)"
    return Check(name, "ok", found)


def same_verdict_check(ours: ChildResult, theirs: ChildResult) -> Check:
    """Whether vLLM, with the adapter, gives each sample the score that Transformers gives it."""
    name = "same verdicts"
    if ours.failure or theirs.failure:
        return Check(name, "skipped", "one of the two did not judge")
    pairs = list(zip(ours.result["scores"], theirs.result["scores"], strict=True))
    if any(score is None for pair in pairs for score in pair):
        return Check(name, "failed", "a sample has no score", "report this, with the log named below")
    most = max(abs(one - other) for one, other in pairs)
    allowed = SAME_SCORE[theirs.result["dtype"]]
    one, other = ours.result["change"], theirs.result["change"]
    found = f"scores differ by at most {most:.4f} ({allowed:g} allowed)"
    found += f", the adapter's change by {abs(one - other):.2g} of {one:.2g}"
    if not (most <= allowed and abs(one - other) <= HALF_ON * one):
        return Check(name, "failed", found, "judge with engine=transformers, and report this")
    return Check(name, "ok", found)
