"""The doctor: is this machine able to do the work? Prints a table; what failed has a line on what to do.

On a machine without a GPU it says so, and checks what a CPU can.
"""

import logging
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.hardware import has_gpu, is_hidden
from monitorbench.config.study import Study
from monitorbench.doctor import system, trials
from monitorbench.doctor.check import Check, table
from monitorbench.runs.files import write_atomically, write_json

_log = logging.getLogger(__name__)
_GIB_NEEDED = 3.0
"""Of main memory, by the small model in vLLM."""


def doctor(study: Study) -> Path:
    """Check this machine and print the table; returns the folder with `checks.json` and the logs.

    Raises `UserError` where a check failed.
    """
    folder = study.paths.runs / "doctor"
    try:
        gpu = has_gpu()
        is_broken = False
    except UserError:  # which the table names; what a model would run on is not known
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
    write_json(folder / "checks.json", {"gpu": gpu, "checks": [check.as_json() for check in checks]})
    failed = [check.name for check in checks if check.state == "failed"]
    if failed:
        print(folder, flush=True)
        raise UserError(f"doctor: {len(failed)} of {len(checks)} checks failed ({', '.join(failed)})")
    return folder


def _tried(study: Study, folder: Path, gpu: bool) -> list[Check]:
    """The checks that run a model; their logs are kept in `folder`."""
    can_judge = find_spec("vllm") is not None
    names = ["imports", "transformers", *(["unsloth"] if gpu else []), "judge-transformers"]
    names += ["judge-vllm"] if can_judge else []
    done: dict[str, trials.ChildResult] = {}
    end = time.monotonic() + study.doctor.seconds
    with tempfile.TemporaryDirectory(prefix="monitorbench-doctor-") as made:
        for name in names:
            if name.startswith("judge") and done["transformers"].failure:
                done[name] = trials.ChildResult({}, "no adapter to judge with: the training failed")
                continue
            _log.info("doctor: %s", name)
            left = min(max(1.0, end - time.monotonic()), study.doctor.seconds / 2)
            done[name] = trials.run_trial(name, study, Path(made), left)
            log = Path(made) / f"{name}.log"
            write_atomically(folder / log.name, log.read_text(errors="replace"))
    plain = done["transformers"]
    checks = [trials.imports_check(done["imports"]), trials.step_check("Transformers step", plain)]
    if gpu:
        checks.append(trials.step_check("Unsloth step", done["unsloth"]))
        checks.append(trials.same_loss_check(plain, done["unsloth"]))
    else:
        why = "hidden" if is_hidden() else "no GPU"
        checks.append(Check("Unsloth step", "skipped", f"needs a GPU ({why})"))
    judged = done["judge-transformers"]
    checks.append(trials.verdict_check("Transformers judges", judged))
    if not can_judge:
        return [*checks, Check("vLLM judges", "skipped", "vllm is not installed")]
    checks.append(trials.verdict_check("vLLM judges", done["judge-vllm"]))
    return [*checks, trials.same_verdict_check(judged, done["judge-vllm"])]
