"""Stages that stand by themselves: the main job in one, the pilot, checks of machines, runs and monitors."""

import logging
from collections.abc import Sequence
from pathlib import Path

from monitorbench.cli.script import stage
from monitorbench.cli.stage import Compose
from monitorbench.config.project import options, trees_of
from monitorbench.config.study import Study

_log = logging.getLogger(__name__)


def _candidates(study: Study, compose: Compose) -> list[Study]:
    from monitorbench.studies.candidates import candidate_studies

    return candidate_studies(study.monitors, compose, options("monitor", trees_of()))


def _choose(study: Study, compose: Compose) -> Path:
    candidates = _candidates(study, compose)
    _log.info("choose: %d monitors over dataset=%s", len(candidates), study.dataset.name)
    from monitorbench.studies.choose import choose  # takes seconds: what is typed was looked at before

    return choose(study, candidates)


def _choice_plan(study: Study, compose: Compose) -> None:
    candidates = _candidates(study, compose)
    from monitorbench.studies.choose import print_choice_plan

    print_choice_plan(study, candidates)


def _asks_a_candidate(study: Study) -> bool:
    return any(not entry.endswith(".jsonl") for entry in study.monitors)


def _gate_exit_code(runs: Sequence[Path]) -> int:
    from monitorbench.gate.stage import worst_exit_code

    return worst_exit_code(runs)


CHOOSE = stage(
    "choose",
    _choose,
    """Choose a monitor and its threshold: build, judge, calibrate, compare, and write the page.

    monitorbench choose 'monitors=[smollm2_135m,smollm2_135m:evidence]' dataset=starter
    monitorbench choose 'monitors=[a.jsonl,b.jsonl]' dataset=jsonl dataset.path=own.jsonl

A monitor is a name, `NAME:PROMPT`, a file of recorded verdicts, or a training run. `plan=true` says what it
would do and how long that takes. What is done is reused; interrupted, the same command goes on. Ends in the
answer's sentence, and prints the directory with `report.html` as its last line.
""",
    reads="monitors dataset prompt engine calibrate stakes recommend report tracking paths",
    plan=_choice_plan,
    is_live=True,
    judges=_asks_a_candidate,
    no_frozen="composes a study for each monitor; expected the typed settings",
    needs=("matplotlib",),
)

VERIFY = stage(
    "verify",
    "monitorbench.runs.command:verify",
    """Compare datasets and runs with the checksums that were written with them.

    monitorbench verify
    monitorbench verify run=runs/evaluate/NAME-HASH

Without `run` all of `paths.data` and `paths.runs`. Prints what is not whole, a line each, and the folder
as its last line; exits with 1 where something is not whole. Changes nothing.
""",
    reads="run paths",
    no_plan="it reads the files of all runs and changes nothing",
)

DOCTOR = stage(
    "doctor",
    "monitorbench.doctor.stage:doctor",
    """Is this machine able to do the work? Driver, memory, disk, packages; a step trained, samples judged.

    monitorbench doctor
    monitorbench doctor doctor.model=monitor monitor=qwen3_4b    # with a model of the hub

Prints a table with what failed and what to do, and exits with 1 where something failed; on a machine
without a GPU it checks what a CPU can. Prints the folder with the logs as its last line.
""",
    reads="doctor monitor paths",
    no_plan="it takes at most doctor.seconds",
)

GATE = stage(
    "gate",
    "monitorbench.gate.stage:gate",
    """Freeze a monitor at its threshold, and judge its anchors again later: does it still do what it did?

    monitorbench gate run=runs/evaluate/NAME-HASH operating_point=runs/calibrate/NAME-HASH
    monitorbench gate gate.file=gate/gate.json monitor=smollm2_135m    # PASS, or why not
    monitorbench gate gate.file=gate/gate.json gate.traffic=today.jsonl    # the drift alarm, without labels

Exits with 0 (PASS), 3 (THRESHOLD_STALE), 4 (DEGRADED) or 5 (INCONCLUSIVE); the drift alarm with 0, 5 or 6;
a multirun (`-m`) with the code of its most severe answer.
Prints the answer with its reason, and the run's directory (gate.json or answer.json) as its last line.
""",
    reads="gate run operating_point monitor engine score paths",
    no_plan="it freezes or judges its anchors alone, gate.questions of them",
    is_live=True,
    exit_code=_gate_exit_code,
)

PILOT = stage(
    "pilot",
    "monitorbench.intervention.run:run_pilot",
    """The pilot before deployment: does letting the monitor intervene help or hurt?

    monitorbench pilot environment=textworld agent=scripted monitor=bag_of_words pilot.tasks=50
    monitorbench pilot outcomes=path/to/outcomes.jsonl
    MONITORBENCH_SOURCES=../shared/data monitorbench pilot recorded=reflexion_mbpp

Prints the decision, and the run's directory (decision.json, outcomes.jsonl) as its last line.
""",
    reads="pilot environment agent recorded outcomes monitor engine seed paths",
    no_plan="how long an agent's runs are is known once it acts; expected a small pilot.tasks first",
    is_live=True,
    needs=("matplotlib",),
)
