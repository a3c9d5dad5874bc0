"""Stages that turn verdicts into numbers and an answer, keep watch over it, and check machines and runs."""

import logging
from pathlib import Path

from monitorbench.cli.stage import Stage, imported
from monitorbench.config.base import ConfigError
from monitorbench.config.project import trees_of
from monitorbench.config.study import Study
from monitorbench.studies import ahead
from monitorbench.studies.candidates import Compose, candidate_studies
from monitorbench.untrusted import TABLES

_log = logging.getLogger(__name__)


def _report(study: Study, _: Compose) -> Path:
    from monitorbench.labelling.stage import is_round
    from monitorbench.report.labelled import report_round
    from monitorbench.report.pilot.page import is_of_a_pilot, report_pilot
    from monitorbench.report.write import is_unscored_evaluation, report
    from monitorbench.scoring.labelled import score_round

    run = study.required_run()
    if is_of_a_pilot(run):
        return report_pilot(run, study.paths.runs)
    if is_round(run):
        return report_round(run, score_round(study, run))
    if study.operating_point is not None or is_unscored_evaluation(run):
        from monitorbench.scoring.score import score_run

        score_run(study)
    return report(study)


def _choose(study: Study, compose: Compose) -> Path:
    if study.from_:
        if study.monitors:
            raise ConfigError(f"monitors=[{','.join(study.monitors)}]: expected this or from=, not both")
        from monitorbench.studies.choose import choose_imported

        return choose_imported(study)
    candidates = candidate_studies(study, compose, trees_of())
    _log.info("choose: %d monitors over dataset=%s", len(candidates), study.dataset.name)
    if all(entry.endswith(".jsonl") for entry in study.monitors):  # no model judges meanwhile
        from monitorbench.corpus.build import ensure
        from monitorbench.records import Split

        data = ensure(study, (Split.CALIBRATION, Split.TEST))
        ahead.fit(study.paths.runs, data, study.stakes, study.seed)
    from monitorbench.studies.choose import choose  # takes seconds: what is typed was looked at before

    return choose(study, candidates)


def _choice_plan(study: Study, compose: Compose) -> None:
    if study.from_:
        from monitorbench.studies.choose import print_import_plan

        print_import_plan(study)
        return
    candidates = candidate_studies(study, compose, trees_of())
    from monitorbench.studies.choose import print_choice_plan

    print_choice_plan(study, candidates)


ANSWERING = (
    Stage(
        "choose",
        _choose,
        """Choose a monitor and its threshold: build, judge, calibrate, compare, and write the page.

    monitorbench choose 'monitors=[smollm2_135m,smollm2_135m:evidence]' dataset=starter
    monitorbench choose 'monitors=[a.jsonl,b.jsonl]' dataset=jsonl dataset.path=own.jsonl
    monitorbench choose from=scores.csv 'import.columns.score=scores.*'    # scores that are there: see import

A monitor is a name, `NAME:PROMPT`, a file of recorded verdicts, a training run or the fit of a probe.
`plan=true` says what it would do and how long that takes. What is done is reused; interrupted, the same
command goes on. Ends in the answer's sentence, and prints the directory with `report.html` as its last line.
""",
        reads="monitors from import dataset prompt engine calibrate stakes recommend report tracking paths",
        plan=_choice_plan,
        is_live=True,
        judges=lambda study: any(not entry.lower().endswith(TABLES) for entry in study.monitors),
        no_frozen="composes a study for each monitor; expected the typed settings",
        needs=("matplotlib",),
        ahead=ahead.begin,
    ),
    Stage(
        "import",
        "monitorbench.interop.imports.stage:import_scores",
        """\
Import somebody else's scores (CSV, JSON lines, Parquet): a dataset, and an evaluation run a monitor.

    monitorbench import from=scores.csv import.columns.score=suspicion import.calibration_share=0.5
    monitorbench calibrate run=latest
    monitorbench report run=latest operating_point=latest

No model is run. A bad row is refused with its line and field, and nothing is written then. Prints the run
over the test split as its last line.
""",
        reads="from import paths",
    ),
    Stage(
        "calibrate",
        "monitorbench.scoring.calibrate:calibrate_run",
        """Choose a threshold on the calibration split, with a guarantee on false alarms, from a log alone.

    monitorbench evaluate evaluate.split=calibration
    monitorbench calibrate run=runs/evaluate/NAME-HASH calibrate.alpha=0.05
    monitorbench score run=runs/evaluate/OTHER-HASH operating_point=runs/calibrate/NAME-HASH

Prints the run's directory (operating_point.json) as its last line.
""",
        reads="calibrate run operating_point label score stakes paths",
    ),
    Stage(
        "score",
        "monitorbench.report.stages:score",
        """Score one evaluation run from its log alone: the table, and metrics.json and table.csv beside it.

    monitorbench score run=runs/evaluate/NAME-HASH
    monitorbench score run=runs/evaluate/NAME-HASH operating_point=runs/calibrate/NAME-HASH

With an operating point metrics.json also has its numbers, and metrics-at-NAME-HASH.json all of them. Prints
the same directory as its last line.
""",
        reads="score run operating_point label calibrate stakes paths",
        after_sweep=imported("monitorbench.report.tables.tables:show_sweep"),
    ),
    Stage(
        "combine",
        "monitorbench.scoring.combination.combined_run:combine_runs",
        """Make one monitor of several judges' finished runs, from their logs alone: an ensemble or a cascade.

    monitorbench combine combine.rule=stacked 'combine.calibration=[A,B]' 'combine.test=[C,D]'
    monitorbench calibrate run=runs/evaluate/STACKED-ON-CALIBRATION
    monitorbench score run=runs/evaluate/STACKED-ON-TEST operating_point=runs/calibrate/NAME-HASH

Writes two evaluation runs, one a split, and prints the test run's directory as its last line.
""",
        reads="combine seed score paths",
    ),
    Stage(
        "control",
        "monitorbench.report.stages:control",
        """\
Safety at an audit budget: what is left uncaught where few alarms on honest traffic can be looked at.

    monitorbench control 'control.calibration=[@smollm2_135m]' 'control.test=[@smollm2_135m]'
    monitorbench control 'control.calibration=[A,B]' 'control.test=[C,D]' control.method=conformal_risk

Several judges are compared at one budget, with their mean and maximum. Writes control.json, control.csv and
control.html, and prints the run's directory as its last line.
""",
        reads="control seed score stakes paths",
        needs=("matplotlib",),
    ),
    Stage(
        "transfer",
        "monitorbench.studies.transfer:transfer",
        """Lay evaluation runs side by side: the transfer matrix of adapters, or heads, against their base.

    monitorbench transfer 'transfer.runs=[runs/evaluate/A,runs/evaluate/B]'
    monitorbench transfer experiment=transfer/cpu    # a study: its runs are found, or made
    monitorbench transfer experiment=transfer/heads  # the same with probes on hidden states
    monitorbench transfer experiment=transfer/cpu plan=true    # what it could show and takes

Prints the run directory as its last line.
""",
        reads="transfer seed dataset monitor prompt training head engine stakes score tracking paths",
        plan="monitorbench.studies.power:print_transfer_plan",
        runs=imported("monitorbench.studies.transfer:coming_runs"),
    ),
    Stage(
        "recommend",
        "monitorbench.report.stages:recommend",
        """Say which monitor to deploy, at which threshold, or what data is missing: one sentence, one page.

    monitorbench recommend 'recommend.runs=[@A/calibration,@A/test,@B/calibration,@B/test]'
    monitorbench recommend 'recommend.runs=[...]' stakes.base_rate=0.02 recommend.pilot=runs/pilot/NAME-HASH

Chosen on the calibration split, measured on the test split. Prints the run's directory (recommendation.json,
recommendation.html) as its last line.
""",
        reads="recommend calibrate stakes score seed paths",
        needs=("matplotlib",),
    ),
    Stage(
        "report",
        _report,
        """Write report.html for a transfer run, a scored evaluation run or a pilot, and print its tables.

    monitorbench report run=runs/transfer/NAME-HASH
    monitorbench report run=runs/pilot/NAME-HASH
    monitorbench report run=runs/evaluate/NAME-HASH operating_point=latest

An evaluation run that has no metrics yet, or is given a threshold, is scored first. Prints the run's
directory as its last line.
""",
        reads="report run operating_point stakes score paths",
        needs=("matplotlib",),
    ),
    Stage(
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
        exit_code=imported("monitorbench.gate.stage:worst_exit_code"),
    ),
    Stage(
        "pilot",
        "monitorbench.intervention.run:run_pilot",
        """The pilot before deployment: does letting the monitor intervene help or hurt?

    monitorbench pilot environment=textworld agent=scripted monitor=bag_of_words pilot.tasks=50
    monitorbench pilot outcomes=path/to/outcomes.jsonl
    MONITORBENCH_SOURCES=DIR monitorbench pilot recorded=reflexion_mbpp

Prints the decision, and the run's directory (decision.json, outcomes.jsonl) as its last line.
""",
        reads="pilot environment agent recorded outcomes monitor engine seed paths",
        no_plan="how long an agent's runs are is known once it acts; expected a small pilot.tasks first",
        is_live=True,
        needs=("matplotlib",),
    ),
    Stage(
        "view",
        "monitorbench.report.view:view",
        """Show all runs on a page of this machine: sort, filter, compare; how far the running ones are.

    monitorbench view
    monitorbench view paths.runs=elsewhere/runs report.port=8080

Read-only, and on 127.0.0.1 alone. Logs the address; Ctrl-C ends it. Prints the folder of runs as its last
line.
""",
        reads="report paths",
        no_plan="it shows the runs that are there, and changes nothing",
    ),
    Stage(
        "verify",
        "monitorbench.runs.verify:verify",
        """Compare datasets and runs with the checksums that were written with them.

    monitorbench verify
    monitorbench verify run=runs/evaluate/NAME-HASH

Without `run` all of `paths.data` and `paths.runs`. Prints what is not whole, a line each, and the folder
as its last line; exits with 1 where something is not whole. Changes nothing.
""",
        reads="run paths",
        no_plan="it reads the files of all runs and changes nothing",
    ),
    Stage(
        "doctor",
        "monitorbench.doctor.stage:doctor",
        """\
Is this machine able to do the work? Driver, memory, disk, packages; a step trained, samples judged.

    monitorbench doctor
    monitorbench doctor doctor.model=monitor monitor=qwen3_4b    # with a model of the hub

Prints a table with what failed and what to do, and exits with 1 where something failed; on a machine
without a GPU it checks what a CPU can. Prints the folder with the logs as its last line.
""",
        reads="doctor monitor paths",
        no_plan="it takes at most doctor.seconds",
    ),
)
