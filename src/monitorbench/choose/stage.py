"""`choose`: build, judge calibration and test, calibrate, lay side by side, recommend, write the page.

Each step is the stage of that name, so what is there already is reused, and the same command resumes. A model
judges in a process of its own, so that none stays in memory.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from monitorbench.choose.candidates import Compose, candidates
from monitorbench.choose.plan import print_plan
from monitorbench.config.base import UserError
from monitorbench.config.engine import refuse_fast_scores
from monitorbench.config.load import freeze
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.judging.evaluate import evaluate, planned_evaluation
from monitorbench.judging.served import described
from monitorbench.metrics.choice.facts import FILE
from monitorbench.records import Split
from monitorbench.report.write import report
from monitorbench.runs.directory import read_checked, record_files
from monitorbench.runs.files import content_hash, write_atomically, write_json
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.recommendation.deployment import deployment_of
from monitorbench.scoring.recommendation.stage import recommend
from monitorbench.scoring.score import transfer
from monitorbench.sweeps.child import run_stage

SPLITS = (Split.CALIBRATION, Split.TEST)
_log = logging.getLogger(__name__)


def choose(study: Study, compose: Compose, known: Sequence[str]) -> Path:
    """Answer which of `study.monitors` to deploy; returns the run directory of the transfer run.

    What `recommend` says of them stands on top of its page.

    `compose` gives the study of what was typed with more overrides, `known` are the configured monitors.
    Raises `ConfigError` for entries that are no monitor, and what the stages raise.
    """
    several = candidates(study, compose, known)
    for one in several:
        refuse_fast_scores(one.engine, "`choose` calibrates")
    if study.plan:
        print_plan(several, SPLITS)
        return study.paths.runs
    deployment_of(study.stakes, study.recommend, study.calibrate)  # refused before hours of judging
    data = ensure(study, SPLITS)
    tested = []
    points = []
    everything: list[Path] = []
    for one in several:
        judged = {split: _judged(_on(one, split), data) for split in SPLITS}
        tested.append(judged[Split.TEST])
        everything += judged.values()
        if (point := _calibrated(one, judged[Split.CALIBRATION])) is not None:
            points.append(point)
    chosen = study.transfer.model_copy(update={"runs": tuple(tested), "operating_points": tuple(points)})
    found = transfer(study.model_copy(update={"transfer": chosen}), decides=False)
    among = study.recommend.model_copy(update={"runs": tuple(everything)})
    recommended = recommend(study.model_copy(update={"recommend": among}))
    write_json(found / FILE, read_checked(recommended, FILE))
    record_files(found, FILE)
    return report(study.model_copy(update={"run": found}))


def _on(study: Study, split: Split) -> Study:
    return study.model_copy(update={"evaluate": study.evaluate.model_copy(update={"split": split.value})})


def _judged(study: Study, data: Path) -> Path:
    """The evaluation run, made in a process of its own where a model has to judge."""
    planned = planned_evaluation(described(study), data)
    if planned.done or study.monitor.verdicts or not study.engine.takes_token_ids:
        return evaluate(study)
    file = study.paths.runs / "studies" / f"choose-{content_hash(planned.run.path.name)}.json"
    write_atomically(file, freeze(study))
    return run_stage("evaluate", file, f"evaluate {planned.name}")


def _calibrated(study: Study, run: Path) -> Path | None:
    """The run's calibration; None, with a line that says why, where no threshold keeps the promise."""
    try:
        return calibrate_run(study.model_copy(update={"run": run}))
    except UserError as error:
        _log.warning("choose: %s", error)
        return None
