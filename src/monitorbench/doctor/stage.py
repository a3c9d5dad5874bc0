"""The doctor: is this machine able to do the work? Prints a table; what failed has a line on what to do.

On a machine without a GPU it says so, and checks what a CPU can.
"""

import logging
import tempfile
import textwrap
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.hardware import has_gpu, is_hidden
from monitorbench.config.study import Study
from monitorbench.doctor import system, trials
from monitorbench.doctor.system import Check
from monitorbench.runs.files import write_atomically, write_json

_log = logging.getLogger(__name__)
_GIB_NEEDED = 3.0
"""Main memory that the small model takes in vLLM, in GiB."""
WIDTH = 80
"""Columns of the table."""
_NAME, _STATE = 20, 9


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
        checks += _tried(study, folder, gpu)
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


def _tried(study: Study, folder: Path, gpu: bool) -> list[Check]:
    """Run the checks that need a model; their logs are kept in `folder`."""
    can_judge = find_spec("vllm") is not None
    names = ["imports", "transformers", *(["unsloth"] if gpu else []), "judge-transformers"]
    names += ["judge-vllm"] if can_judge else []
    done: dict[str, trials.ChildResult] = {}
    end = time.monotonic() + study.doctor.seconds
    with tempfile.TemporaryDirectory(prefix="monitorbench-doctor-") as scratch:
        for name in names:
            if name.startswith("judge") and done["transformers"].failure:
                done[name] = trials.ChildResult({}, "no adapter to judge with: the training failed")
                continue
            _log.info("doctor: %s", name)
            seconds = min(max(1.0, end - time.monotonic()), study.doctor.seconds / 2)
            done[name] = trials.run_trial(name, study, Path(scratch), seconds)
            log = Path(scratch) / f"{name}.log"
            write_atomically(folder / log.name, log.read_text(errors="replace"))
    plain = done["transformers"]
    checks = [trials.imports_check(done["imports"]), trials.step_check("Transformers step", plain)]
    if gpu:
        checks.append(trials.step_check("Unsloth step", done["unsloth"]))
        checks.append(trials.same_loss_check(plain, done["unsloth"]))
    else:
        reason = "hidden" if is_hidden() else "no GPU"
        checks.append(Check("Unsloth step", "skipped", f"needs a GPU ({reason})"))
    judged = done["judge-transformers"]
    checks.append(trials.verdict_check("Transformers judges", judged))
    if not can_judge:
        return [*checks, Check("vLLM judges", "skipped", "vllm is not installed")]
    checks.append(trials.verdict_check("vLLM judges", done["judge-vllm"]))
    return [*checks, trials.same_verdict_check(judged, done["judge-vllm"])]
