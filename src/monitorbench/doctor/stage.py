"""The doctor: is this machine able to do the work? Prints a table; what failed has a line on what to do.

The system is asked, then a small model is tried in child processes with a time limit. On a machine without a
GPU the doctor says so, and checks what a CPU can.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.hardware import has_gpu, is_hidden
from monitorbench.config.load import freeze
from monitorbench.config.study import Study
from monitorbench.doctor import system
from monitorbench.doctor.system import Check
from monitorbench.runs.files import write_atomically, write_json

_log = logging.getLogger(__name__)
_GIB_NEEDED = 3.0
"""Main memory that the small model takes in vLLM, in GiB."""
WIDTH = 80
"""Columns of the table."""
_NAME, _STATE = 20, 9
SAME_LOSS = 0.05
"""Largest allowed difference of two loaders' first losses, in nats: bfloat16 rounds them differently."""
SAME_SCORE = {"float32": 0.01, "bfloat16": 0.1}
"""Largest allowed difference of two engines' scores of one sample, by dtype."""
HALF_ON = 0.25
"""Largest allowed relative difference of an adapter's effect on a log-probability; above, layers are off."""


def doctor(study: Study) -> Path:
    """Check this machine and print the table; returns the folder with `checks.json` and the logs.

    Raises `UserError` where a check failed.
    """
    folder = study.paths.runs / "doctor"
    try:
        gpu = has_gpu()
        is_broken = False
    except UserError:  # the driver check names it; what a model would run on is not known
        gpu, is_broken = True, True
    checks = [system.driver_check()]
    if gpu and not is_broken:
        checks.append(system.gpu_memory_check())
    checks.append(system.memory_check(_GIB_NEEDED))
    places = {"paths.runs": study.paths.runs, "paths.models": study.paths.models}
    checks += [system.disk_check(places, study.doctor.disk_gib), system.versions_check()]
    if is_broken:
        checks.append(Check("trials", "skipped", "the GPU can't be used"))
    else:
        checks += _tried(freeze(study), study.doctor.seconds, folder, gpu)
    print(f"{system.this_machine(gpu)}\n\n{table(checks)}")
    write_json(folder / "checks.json", {"gpu": gpu, "checks": [check._asdict() for check in checks]})
    failed = [check.name for check in checks if check.state == "failed"]
    if failed:
        print(folder, flush=True)
        raise UserError(f"doctor: {len(failed)} of {len(checks)} checks failed ({', '.join(failed)})")
    return folder


def table(checks: Sequence[Check]) -> str:
    """Lay the checks out in lines of at most `WIDTH` characters; what to do stands behind an arrow."""
    indent = " " * (_NAME + _STATE)
    lines = [f"{'check':<{_NAME}}{'state':<{_STATE}}finding", "-" * WIDTH]
    for check in checks:
        head = f"{check.name:<{_NAME}}{check.state:<{_STATE}}"
        text = " ".join(check.finding.split())
        lines += textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=indent) or [head.rstrip()]
        if check.remedy:
            lines += textwrap.wrap(
                check.remedy, WIDTH, initial_indent=f"{indent}-> ", subsequent_indent=f"{indent}   "
            )
    return "\n".join(lines)


class Trial(NamedTuple):
    """The result of a trial in a child process, or why there is none."""

    result: Mapping[str, Any]
    """Values the child wrote; empty where the trial failed."""
    failure: str = ""
    """Reason in one line; empty where the trial succeeded."""


def _tried(frozen: str, seconds: float, folder: Path, gpu: bool) -> list[Check]:
    """Run the checks that need a model, within so many seconds; their logs are kept in `folder`."""
    can_judge = find_spec("vllm") is not None
    names = ["imports", "transformers", *(["unsloth"] if gpu else []), "judge-transformers"]
    names += ["judge-vllm"] if can_judge else []
    trials: dict[str, Trial] = {}
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="monitorbench-doctor-") as scratch:
        for name in names:
            if name.startswith("judge") and trials["transformers"].failure:
                trials[name] = Trial({}, "no adapter to judge with: the training failed")
                continue
            _log.info("doctor: %s", name)
            left = min(max(1.0, end - time.monotonic()), seconds / 2)
            trials[name] = run_trial(name, frozen, Path(scratch), left)
            log = Path(scratch) / f"{name}.log"
            write_atomically(folder / log.name, log.read_text(errors="replace"))
    trained, judged = trials["transformers"], trials["judge-transformers"]
    checks = [imports_check(trials["imports"]), step_check("Transformers step", trained)]
    if gpu:
        checks.append(step_check("Unsloth step", trials["unsloth"]))
        checks.append(same_loss_check(trained, trials["unsloth"]))
    else:
        reason = "hidden" if is_hidden() else "no GPU"
        checks.append(Check("Unsloth step", "skipped", f"needs a GPU ({reason})"))
    checks.append(verdict_check("Transformers judges", judged))
    if not can_judge:
        return [*checks, Check("vLLM judges", "skipped", "vllm is not installed")]
    vllm = trials["judge-vllm"]
    return [*checks, verdict_check("vLLM judges", vllm), same_verdict_check(judged, vllm)]


def run_trial(name: str, frozen: str, folder: Path, seconds: float) -> Trial:
    """Run one trial of `doctor.child` on a frozen study and wait; its worker processes are ended with it."""
    file, log = folder / "study.json", folder / f"{name}.log"
    file.write_text(frozen)
    command = [sys.executable, "-m", "monitorbench.doctor.child", name, str(file), str(folder)]
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
            return Trial({}, f"not done after {seconds:g} s (doctor.seconds)")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code == 0:
        return Trial(json.loads((folder / f"{name}.json").read_text()))
    # The error that ended the child: the last line of its log that names one, else the last line.
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line.split(" ")[0]]
    return Trial({}, next(iter(reversed(errors or lines)), "")[:240] or f"exit code {code}")


def imports_check(trial: Trial) -> Check:
    """Check that every module of the environment could be imported."""
    if trial.failure:
        return Check("imports", "failed", trial.failure, "see the log that is named below")
    failed: Mapping[str, str] = trial.result["failed"]
    if failed:
        finding = "; ".join(f"{name}: {error}" for name, error in failed.items())
        return Check("imports", "failed", finding[:400], "install what the lock says (the line `versions`)")
    return Check("imports", "ok", f"{', '.join(trial.result['modules'])} ({trial.result['seconds']:.0f} s)")


def step_check(name: str, trial: Trial) -> Check:
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


def same_loss_check(ours: Trial, theirs: Trial) -> Check:
    """Check that Unsloth's first loss equals that of Transformers."""
    name = "same loss"
    if ours.failure or theirs.failure:
        return Check(name, "skipped", "one of the two did not train")
    plain, unsloth = ours.result["losses"][0], theirs.result["losses"][0]
    finding = f"first step: Transformers {plain:.4f}, Unsloth {unsloth:.4f}"
    if not abs(plain - unsloth) <= SAME_LOSS:
        return Check(name, "failed", finding, "train with training.loader=transformers, and report this")
    return Check(name, "ok", finding)


def verdict_check(name: str, trial: Trial) -> Check:
    """Check that an engine judged with the adapter on."""
    if trial.failure:
        return Check(name, "failed", trial.failure, "this engine can't be used here: see the log named below")
    finding = f"{len(trial.result['scores'])} samples, {trial.result['dtype']}"
    finding += f", adapter moves a logprob by {trial.result['change']:.2g} ({trial.result['seconds']:.0f} s)"
    return Check(name, "ok", finding)


def same_verdict_check(ours: Trial, theirs: Trial) -> Check:
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
