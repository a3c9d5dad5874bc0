"""Stages that turn verdicts into numbers and an answer."""

from pathlib import Path
from typing import TYPE_CHECKING

from monitorbench.cli.script import one_table, stage
from monitorbench.cli.stage import Compose
from monitorbench.config.study import Study

if TYPE_CHECKING:
    from monitorbench.studies.forecast import PlannedRun


def _transfer_runs(study: Study) -> "list[PlannedRun]":
    from monitorbench.studies.transfer import coming_runs

    return coming_runs(study)


def _report(study: Study, _: Compose) -> Path:
    from monitorbench.intervention.report.write import is_of_a_pilot, report_pilot
    from monitorbench.report.write import is_unscored_evaluation, report

    run = study.required_run()
    if is_of_a_pilot(run):
        return report_pilot(study)
    if study.operating_point is not None or is_unscored_evaluation(run):
        from monitorbench.scoring.score import score_run

        score_run(study, shows_tables=False)
    return report(study)


IMPORT = stage(
    "import",
    "monitorbench.interop.imports.stage:import_scores",
    """Import somebody else's scores (CSV, JSON lines, Parquet): a dataset, and an evaluation run a monitor.

    monitorbench import from=scores.csv import.columns.score=suspicion import.calibration_share=0.5
    monitorbench calibrate run=latest
    monitorbench report run=latest operating_point=latest

No model is run. A bad row is refused with its line and field, and nothing is written then. Prints the run
over the test split as its last line.
""",
    reads="from import paths",
)

CALIBRATE = stage(
    "calibrate",
    "monitorbench.scoring.calibrate:calibrate_run",
    """Choose a threshold on the calibration split, with a guarantee on false alarms, from a log alone.

    monitorbench evaluate evaluate.split=calibration
    monitorbench calibrate run=runs/evaluate/NAME-HASH calibrate.alpha=0.05
    monitorbench score run=runs/evaluate/OTHER-HASH operating_point=runs/calibrate/NAME-HASH

Prints the run's directory (operating_point.json) as its last line.
""",
    reads="calibrate run score stakes paths",
)

SCORE = stage(
    "score",
    "monitorbench.scoring.score:score_run",
    """Score one evaluation run from its log alone: the table, and metrics.json and table.csv beside it.

    monitorbench score run=runs/evaluate/NAME-HASH
    monitorbench score run=runs/evaluate/NAME-HASH operating_point=runs/calibrate/NAME-HASH

With an operating point metrics.json also has its numbers, and metrics-at-NAME-HASH.json all of them. Prints
the same directory as its last line.
""",
    reads="score run operating_point stakes paths",
    after_sweep=one_table,
)

COMBINE = stage(
    "combine",
    "monitorbench.scoring.combination.combine:combine_runs",
    """Make one monitor of several judges' finished runs, from their logs alone: an ensemble or a cascade.

    monitorbench combine combine.rule=stacked 'combine.calibration=[A,B]' 'combine.test=[C,D]'
    monitorbench calibrate run=runs/evaluate/STACKED-ON-CALIBRATION
    monitorbench score run=runs/evaluate/STACKED-ON-TEST operating_point=runs/calibrate/NAME-HASH

Writes two evaluation runs, one a split, and prints the test run's directory as its last line.
""",
    reads="combine seed score paths",
)

CONTROL = stage(
    "control",
    "monitorbench.scoring.control.stage:control_runs",
    """Safety at an audit budget: what is left uncaught where few alarms on honest traffic can be looked at.

    monitorbench control 'control.calibration=[@smollm2_135m]' 'control.test=[@smollm2_135m]'
    monitorbench control 'control.calibration=[A,B]' 'control.test=[C,D]' control.method=conformal_risk

Several judges are compared at one budget, with their mean and maximum. Writes control.json, control.csv and
control.html, and prints the run's directory as its last line.
""",
    reads="control seed score stakes paths",
    needs=("matplotlib",),
)

TRANSFER = stage(
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
    runs=_transfer_runs,
)

RECOMMEND = stage(
    "recommend",
    "monitorbench.scoring.recommendation.stage:recommend",
    """Say which monitor to deploy, at which threshold, or what data is missing: one sentence, one page.

    monitorbench recommend 'recommend.runs=[@A/calibration,@A/test,@B/calibration,@B/test]'
    monitorbench recommend 'recommend.runs=[...]' stakes.base_rate=0.02 recommend.pilot=runs/pilot/NAME-HASH

Chosen on the calibration split, measured on the test split. Prints the run's directory (recommendation.json,
recommendation.html) as its last line.
""",
    reads="recommend calibrate stakes score seed paths",
    needs=("matplotlib",),
)

REPORT = stage(
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
)
