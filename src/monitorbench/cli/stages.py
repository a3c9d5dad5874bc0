"""Every stage as a command: `monitorbench NAME key=value …`, and the script of that name, which is the same.

A stage's module is imported when it is run, so that help and a mistyped setting cost nothing heavy.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from monitorbench.config.base import ConfigError
from monitorbench.config.entry import Script
from monitorbench.config.project import options
from monitorbench.config.study import Study

if TYPE_CHECKING:
    from monitorbench.forecast.work import Run


def _stage(
    name: str,
    function: str | Callable[[Study], Path],
    text: str,
    *,
    is_live: bool = False,
    after_sweep: Callable[[Sequence[tuple[Study, Path]]], None] | None = None,
    value: Callable[[Path], float] | None = None,
    exit_code: Callable[[Path], int] | None = None,
    runs: Callable[[Study], Sequence["Run"]] | None = None,
) -> Script:
    """The stage whose primary config is `name`; `function` takes the study, `module:function` or itself."""

    def named(study: Study) -> Path:
        module, _, attribute = str(function).partition(":")
        directory: Path = getattr(import_module(module), attribute)(study)
        return directory

    run = function if callable(function) else named
    return Script(
        run,
        name,
        text=text,
        is_live=is_live,
        after_sweep=after_sweep,
        runs=runs,
        resolve=_resolved,
        value=value,
        exit_code=exit_code,
    )


def _resolved(study: Study, stage: str) -> Study:
    from monitorbench.catalog.selectors import resolved

    return resolved(study, stage)


def _training(study: Study) -> "list[Run]":
    from monitorbench.forecast.work import Run

    return [Run("train", study)]


def _evaluation(study: Study) -> "list[Run]":
    from monitorbench.forecast.work import Run

    return [Run("evaluate", study)]


def _study_runs(study: Study) -> "list[Run]":
    from monitorbench.probe.plan import coming_runs

    return coming_runs(study)


def _one_table(jobs: Sequence[tuple[Study, Path]]) -> None:
    from monitorbench.scoring.sweep_table import show_sweep

    show_sweep(jobs)


def _trials(jobs: Sequence[tuple[Study, Path]]) -> None:
    from monitorbench.training.trials import show_trials

    show_trials(jobs)


def _validation_auroc(run: Path) -> float:
    from monitorbench.training.trials import validation_auroc

    return validation_auroc(run)


def _gate_exit_code(run: Path) -> int:
    from monitorbench.gate.stage import exit_code

    return exit_code(run)


def _annotate(study: Study) -> Path:
    from monitorbench.annotation.stage import annotate

    return annotate(study, study.annotation)


def _report(study: Study) -> Path:
    from monitorbench.intervention.report.write import is_of_a_pilot, report_pilot
    from monitorbench.report.write import is_unscored_evaluation, report

    run = study.required_run()
    if is_of_a_pilot(run):
        return report_pilot(study)
    if study.operating_point is not None or is_unscored_evaluation(run):
        from monitorbench.scoring.score import score_run

        score_run(study, shows_tables=False)
    return report(study)


def _choose(study: Study) -> Path:
    from monitorbench.choose.stage import choose

    typed = sys.argv[1:]
    if study.monitors and any(one.startswith(("-", "frozen=")) for one in typed):
        raise ConfigError("choose: takes no flags such as -m; expected settings as key=value")
    return choose(study, lambda more: CHOOSE.study([*typed, *more]), options("monitor"))


def _wording(study: Study) -> Path:
    from monitorbench.choose.wording import choose_a_wording

    typed = sys.argv[1:]
    if any(one.startswith("-") for one in typed):
        raise ConfigError("wording: takes no flags such as -m; expected settings as key=value")
    of_prompts = [one for one in typed if one.lstrip("+").startswith("prompt.")]
    return choose_a_wording(study, lambda name: WORDING.study([f"prompt={name}", *of_prompts]).prompt)


CHOOSE = _stage(
    "choose",
    _choose,
    """Choose a monitor and its threshold: build, judge, calibrate, compare, and write the page.

    monitorbench choose monitors=[smollm2_135m,smollm2_135m:evidence] dataset=starter
    monitorbench choose monitors=[a.jsonl,b.jsonl] dataset=jsonl dataset.path=own.jsonl

A monitor is a name, `NAME:PROMPT`, a file of recorded verdicts, or a training run. `plan=true` says what it
would do and how long that takes. What is done is reused; interrupted, the same command goes on. Ends in the
answer's sentence, and prints the directory with `report.html` as its last line.
""",
    is_live=True,
)

BUILD = _stage(
    "build",
    "monitorbench.corpus.build:build",
    """Build a dataset's splits, with its manifest.

    monitorbench build dataset=starter
    monitorbench build dataset=paper dataset.plan=true    # what could be had, by cell; builds nothing

Prints the dataset's directory as its last line.
""",
)

ELICIT = _stage(
    "elicit",
    "monitorbench.corpus.elicit:elicit",
    """Ask a subject model (`monitor=`) real questions, without and with a misleading cue; keep its answers.

    monitorbench elicit monitor=smollm2_135m elicit.sources=[bbq]

Interrupted, it resumes with the questions that have no answer yet.
Prints the answers' directory, for `dataset.elicited=DIR`.
""",
    is_live=True,
)

ANNOTATE = _stage(
    "annotate",
    _annotate,
    """Have samples labelled by annotators: export blind batches, import what they return.

    monitorbench annotate dataset=starter annotation.samples_per_cell=20

Prints the batch's directory; with `annotation.action=import run=BATCH annotation.returned=[FILE,FILE]`
the directory of the kept samples.
""",
)

MIRROR = _stage(
    "mirror",
    "monitorbench.sources.mirror:mirror",
    """Fill a local mirror with the raw files of a dataset, on a machine with a network; resumes, verifies.

    monitorbench mirror dataset=paper paths.sources=DIR

Prints a line a source, what could not be had and why, and the mirror's folder as its last line.
""",
)

AUDIT = _stage(
    "audit",
    "monitorbench.corpus.audit:audit",
    """Write a dataset's card: counts, lengths, sources, licences, and what gives labels away without reading.

    monitorbench audit dataset=starter

Builds the dataset where it is not there. Prints its directory as its last line.
""",
)

EXPORT = _stage(
    "export",
    "monitorbench.interop.export:export",
    """Export a dataset (chats for TRL, a hub repository with its card), or a run's scores as an Inspect log.

    monitorbench export dataset=starter export.format=chat
    monitorbench export dataset=starter export.format=hub export.repo=OWNER/NAME  # a dry run
    monitorbench export export.format=inspect run=runs/evaluate/NAME-HASH

Prints the directory with what was written as its last line.
""",
)

TRAIN = _stage(
    "train",
    "monitorbench.training.stage:train",
    """Fine-tune a monitor with LoRA on the label tokens of a train subset.

    monitorbench train dataset.train.subset=safety_permission
    monitorbench train -m experiment=tune/starter    # learning rate and rank, by the validation split

Prints the training run's directory as its last line: the value for monitor.adapter.
""",
    is_live=True,
    after_sweep=_trials,
    value=_validation_auroc,
    runs=_training,
)

FIT = _stage(
    "fit",
    "monitorbench.training.fit_head:fit_head",
    """Fit a probe: a head on a monitor's hidden states, of a layer and position that validation chooses.

    monitorbench fit head=linear dataset.train.subset=safety_permission
    monitorbench evaluate monitor.head=runs/fit/NAME-HASH

Prints the run's directory as its last line: the value for monitor.head.
""",
    is_live=True,
)

MERGE = _stage(
    "merge",
    "monitorbench.training.publish:merge_run",
    """Merge a trained adapter into its base: a full model folder (safetensors), the value for monitor.path.

    monitorbench merge run=runs/train/NAME-HASH

Prints that folder as its last line.
""",
)

PUSH = _stage(
    "push",
    "monitorbench.training.publish:push_run",
    """Publish a trained adapter, or with push.merged=true the merged model, with a generated card.

    monitorbench push run=runs/train/NAME-HASH push.repo=OWNER/NAME

That is a dry run; push.dry_run=false uploads. Prints the run's directory, where the card
is `README.md`, as its last line.
""",
)

EVALUATE = _stage(
    "evaluate",
    "monitorbench.judging.adapters:evaluate_each",
    """Judge a dataset's test split: one verdict per sample in verdicts.jsonl.

    monitorbench evaluate monitor=smollm2_135m prompt=direct,evidence engine=transformers -m
    monitorbench evaluate monitor=smollm2_135m adapters=[RUN,RUN] # base and adapters, one start

Prints the evaluation run's directory as its last line.
""",
    is_live=True,
    after_sweep=_one_table,
    runs=_evaluation,
)

WORDING = _stage(
    "wording",
    _wording,
    """Choose how a monitor is asked: judge the validation split with several prompts, take the highest AUROC.

    monitorbench wording monitor=smollm2_135m
    monitorbench wording wording.prompts=[direct,direct_act] wording.test=all
    monitorbench probe probe.wordings=[latest]    # the tested prompts side by side, the chosen one marked

The test split is judged under the chosen prompt afterwards (`wording.test`: none, chosen, all), and these
runs are printed. Prints the run's directory (wording.json) as its last line.
""",
    is_live=True,
)

IMPORT = _stage(
    "import",
    "monitorbench.interop.imports.stage:import_scores",
    """Import somebody else's scores (CSV, JSON lines, Parquet): a dataset, and an evaluation run a monitor.

    monitorbench import from=scores.csv import.columns.score=suspicion import.calibration_share=0.5
    monitorbench calibrate run=latest
    monitorbench report run=latest operating_point=latest

No model is run. A bad row is refused with its line and field, and nothing is written then. Prints the run
over the test split as its last line.
""",
)

STRESS = _stage(
    "stress",
    "monitorbench.stress.stage:stress",
    """Judge an evaluation's samples again under changes that must not change the label: does the judge stand?

    monitorbench stress run=latest stress.changes=[instruction,padding.2k] stress.pairs_per_cell=10

Prints what is shown to make it worse, a row a change, and the run's directory (stress.json) as its last line.
""",
    is_live=True,
)

CALIBRATE = _stage(
    "calibrate",
    "monitorbench.scoring.calibrate:calibrate_run",
    """Choose a threshold on the calibration split, with a guarantee on false alarms, from a log alone.

    monitorbench evaluate evaluate.split=calibration
    monitorbench calibrate run=runs/evaluate/NAME-HASH calibrate.alpha=0.05
    monitorbench score run=runs/evaluate/OTHER-HASH operating_point=runs/calibrate/NAME-HASH

Prints the run's directory (operating_point.json) as its last line.
""",
)

SCORE = _stage(
    "score",
    "monitorbench.scoring.score:score_run",
    """Score one evaluation run from its log alone: the table, and metrics.json and table.csv beside it.

    monitorbench score run=runs/evaluate/NAME-HASH
    monitorbench score run=runs/evaluate/NAME-HASH operating_point=runs/calibrate/NAME-HASH

With an operating point metrics.json also has its numbers, and metrics-at-NAME-HASH.json all of them. Prints
the same directory as its last line.
""",
    after_sweep=_one_table,
    runs=_evaluation,
)

COMBINE = _stage(
    "combine",
    "monitorbench.scoring.combination.combine:combine_runs",
    """Make one monitor of several judges' finished runs, from their logs alone: an ensemble or a cascade.

    monitorbench combine combine.rule=stacked combine.calibration=[A,B] combine.test=[C,D]
    monitorbench calibrate run=runs/evaluate/STACKED-ON-CALIBRATION
    monitorbench score run=runs/evaluate/STACKED-ON-TEST operating_point=runs/calibrate/NAME-HASH

Writes two evaluation runs, one a split, and prints the test run's directory as its last line.
""",
)

CONTROL = _stage(
    "control",
    "monitorbench.scoring.control.stage:control_runs",
    """Safety at an audit budget: what is left uncaught where few alarms on honest traffic can be looked at.

    monitorbench control control.calibration=[@smollm2_135m] control.test=[@smollm2_135m]
    monitorbench control control.calibration=[A,B] control.test=[C,D] control.method=conformal_risk

Several judges are compared at one budget, with their mean and maximum. Writes control.json, control.csv and
control.html, and prints the run's directory as its last line.
""",
)

PROBE = _stage(
    "probe",
    "monitorbench.probe.stage:probe",
    """Lay evaluation runs side by side: the transfer matrix of adapters, or heads, against their base.

    monitorbench probe probe.runs=[runs/evaluate/A,runs/evaluate/B]
    monitorbench probe experiment=probe/cpu     # a study: its runs are found, or made, by what decides them
    monitorbench probe experiment=probe/heads   # the same with probes on hidden states, in one process
    monitorbench probe experiment=probe/cpu probe.plan=true    # what it could show, and what it takes

Prints the probe's run directory as its last line.
""",
    runs=_study_runs,
)

RECOMMEND = _stage(
    "recommend",
    "monitorbench.scoring.recommendation.stage:recommend",
    """Say which monitor to deploy, at which threshold, or what data is missing: one sentence, one page.

    monitorbench recommend recommend.runs=[@A/calibration,@A/test,@B/calibration,@B/test]
    monitorbench recommend recommend.runs=[...] stakes.base_rate=0.02 recommend.pilot=runs/pilot/NAME-HASH

Chosen on the calibration split, measured on the test split. Prints the run's directory (recommendation.json,
recommendation.html) as its last line.
""",
)

REPORT = _stage(
    "report",
    _report,
    """Write report.html for a probe, a scored evaluation run or a pilot, and print its tables.

    monitorbench report run=runs/probe/NAME-HASH
    monitorbench report run=runs/pilot/NAME-HASH
    monitorbench report run=runs/evaluate/NAME-HASH operating_point=latest

An evaluation run that has no metrics yet, or is given a threshold, is scored first. Prints the run's
directory as its last line.
""",
)

VERIFY = _stage(
    "verify",
    "monitorbench.runs.verify:verify",
    """Compare datasets and runs with the checksums that were written with them.

    monitorbench verify
    monitorbench verify run=runs/evaluate/NAME-HASH

Without `run` all of `paths.data` and `paths.runs`. Prints what is not whole, a line each, and the folder
as its last line; exits with 1 where something is not whole. Changes nothing.
""",
)

DOCTOR = _stage(
    "doctor",
    "monitorbench.doctor.stage:doctor",
    """Is this machine able to do the work? Driver, memory, disk, packages; a step trained, samples judged.

    monitorbench doctor
    monitorbench doctor doctor.model=monitor monitor=qwen3_4b    # with a model of the hub

Prints a table with what failed and what to do, and exits with 1 where something failed; on a machine
without a GPU it checks what a CPU can. Prints the folder with the logs as its last line.
""",
)

GATE = _stage(
    "gate",
    "monitorbench.gate.stage:gate",
    """Freeze a monitor at its threshold, and judge its anchors again later: does it still do what it did?

    monitorbench gate run=runs/evaluate/NAME-HASH operating_point=runs/calibrate/NAME-HASH
    monitorbench gate gate.file=gate/gate.json monitor=smollm2_135m    # PASS, or why not
    monitorbench gate gate.file=gate/gate.json gate.traffic=today.jsonl    # the drift alarm, without labels

Exits with 0 (PASS), 3 (THRESHOLD_STALE), 4 (DEGRADED) or 5 (INCONCLUSIVE); the drift alarm with 0 or 6.
Prints the answer with its reason, and the run's directory (gate.json or answer.json) as its last line.
""",
    is_live=True,
    exit_code=_gate_exit_code,
)

SERVE = _stage(
    "serve",
    "monitorbench.guardrail.stage:serve",
    """Serve a monitor, adapter included, through vLLM's OpenAI-compatible server until Ctrl-C.

    monitorbench serve monitor=smollm2_135m engine=vllm
    monitorbench serve serve.guardrail=true operating_point=latest    # flag or pass, as calibrated
    monitorbench serve monitor=smollm2_135m engine=transformers monitor.head_beside=RUN    # with its probe

With a probe (a run of fit.py) model and probe answer POST /judge from one pass.
Prints the run's directory (server.json has the address) once the server is healthy.
""",
    is_live=True,
)

PILOT = _stage(
    "pilot",
    "monitorbench.intervention.run:run_pilot",
    """The pilot before deployment: does letting the monitor intervene help or hurt?

    monitorbench pilot environment=textworld agent=scripted monitor=bag_of_words pilot.tasks=50
    monitorbench pilot outcomes=path/to/outcomes.jsonl
    MONITORBENCH_SOURCES=../shared/data monitorbench pilot recorded=reflexion_mbpp

Prints the decision, and the run's directory (decision.json, outcomes.jsonl) as its last line.
""",
    is_live=True,
)

STAGES = {
    script.primary: script
    for script in (
        CHOOSE,
        MIRROR,
        BUILD,
        ELICIT,
        ANNOTATE,
        AUDIT,
        EXPORT,
        TRAIN,
        FIT,
        MERGE,
        PUSH,
        EVALUATE,
        WORDING,
        IMPORT,
        STRESS,
        CALIBRATE,
        SCORE,
        COMBINE,
        CONTROL,
        PROBE,
        RECOMMEND,
        REPORT,
        VERIFY,
        DOCTOR,
        GATE,
        SERVE,
        PILOT,
    )
}
"""By name."""
