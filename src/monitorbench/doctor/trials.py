"""Trials in child processes with a time limit, and the checks made of their results."""

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
from monitorbench.doctor.system import Check

SAME_LOSS = 0.05
"""Largest allowed difference of two loaders' first losses, in nats: bfloat16 rounds them differently."""
SAME_SCORE = {"float32": 0.01, "bfloat16": 0.1}
"""Largest allowed difference of two engines' scores of one sample, by dtype."""

HALF_ON = 0.25
"""Largest allowed relative difference of an adapter's effect on a log-probability; above, layers are off."""


class ChildResult(NamedTuple):
    """The result of a child process, or why there is none."""

    result: Mapping[str, Any]
    """Values the child wrote; empty where the trial failed."""
    failure: str
    """Reason in one line; empty where the trial succeeded."""


def run_trial(name: str, study: Study, folder: Path, seconds: float) -> ChildResult:
    """Run one trial of `doctor.child` and wait for it; its worker processes are ended with it."""
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
    """Find the error that ended a child: the last line of its log that names one, else the last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line.split(" ")[0]]
    return next(iter(reversed(errors or lines)), "")[:240]


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def imports_check(trial: ChildResult) -> Check:
    """Check that every module of the environment could be imported."""
    if trial.failure:
        return Check("imports", "failed", trial.failure, "see the log that is named below")
    failed: Mapping[str, str] = trial.result["failed"]
    if failed:
        finding = "; ".join(f"{name}: {error}" for name, error in failed.items())
        return Check("imports", "failed", finding[:400], "install what the lock says (the line `versions`)")
    return Check("imports", "ok", f"{', '.join(trial.result['modules'])} ({trial.result['seconds']:.0f} s)")


def step_check(name: str, trial: ChildResult) -> Check:
    """Check that some steps could be trained and the loss fell."""
    if trial.failure:
        return Check(
            name, "failed", trial.failure, f"training.loader={name.partition(' ')[0].lower()} fails here"
        )
    losses = trial.result["losses"]
    finding = f"{len(losses)} steps, loss {losses[0]:.3f} -> {losses[-1]:.3f}, {trial.result['dtype']}"
    finding += f" on {trial.result['device']} ({trial.result['seconds']:.0f} s)"
    if not losses[-1] < losses[0]:  # also where it is nan
        return Check(name, "failed", finding, "the loss does not fall: don't train on this machine")
    return Check(name, "ok", finding)


def same_loss_check(ours: ChildResult, theirs: ChildResult) -> Check:
    """Check that Unsloth's first loss equals that of Transformers."""
    name = "same loss"
    if ours.failure or theirs.failure:
        return Check(name, "skipped", "one of the two did not train")
    plain, unsloth = ours.result["losses"][0], theirs.result["losses"][0]
    finding = f"first step: Transformers {plain:.4f}, Unsloth {unsloth:.4f}"
    if not abs(plain - unsloth) <= SAME_LOSS:
        return Check(name, "failed", finding, "train with training.loader=transformers, and report this")
    return Check(name, "ok", finding)


def verdict_check(name: str, trial: ChildResult) -> Check:
    """Check that an engine judged with the adapter on."""
    if trial.failure:
        return Check(name, "failed", trial.failure, "this engine can't be used here: see the log named below")
    finding = f"{len(trial.result['scores'])} samples, {trial.result['dtype']}"
    finding += f", adapter moves a logprob by {trial.result['change']:.2g} ({trial.result['seconds']:.0f} s)"
    return Check(name, "ok", finding)


def same_verdict_check(ours: ChildResult, theirs: ChildResult) -> Check:
    """Check that vLLM, with the adapter, gives each sample the score that Transformers gives it."""
    name = "same verdicts"
    if ours.failure or theirs.failure:
        return Check(name, "skipped", "one of the two did not judge")
    pairs = list(zip(ours.result["scores"], theirs.result["scores"], strict=True))
    if any(score is None for pair in pairs for score in pair):
        return Check(name, "failed", "a sample has no score", "report this, with the log named below")
    largest = max(abs(first - second) for first, second in pairs)
    allowed = SAME_SCORE[theirs.result["dtype"]]
    change, vllm_change = ours.result["change"], theirs.result["change"]
    finding = f"scores differ by at most {largest:.4f} ({allowed:g} allowed)"
    finding += f", the adapter's change by {abs(change - vllm_change):.2g} of {change:.2g}"
    if not (largest <= allowed and abs(change - vllm_change) <= HALF_ON * change):
        return Check(name, "failed", finding, "judge with engine=transformers, and report this")
    return Check(name, "ok", finding)
