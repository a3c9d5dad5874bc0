"""The kinds of file that the package reads back: one of each, below a copy of what `shared` made."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.faults.flips import Kind
from benchmarks.faults.stages import JUDGED, LOCAL, PILOT, Shared, shared_below
from benchmarks.judged import composed
from monitorbench.config.base import UserError
from monitorbench.corpus.columns import read_columns
from monitorbench.corpus.elicited import Elicited, open_answer_log, read_answers
from monitorbench.corpus.store import read_split
from monitorbench.intervention.critic import read_critic_data
from monitorbench.intervention.loop.live import run_live
from monitorbench.judging.evaluate import planned_evaluation, training_facts
from monitorbench.prompts.wording import published_prompt
from monitorbench.records import Split
from monitorbench.report.pilot.flips import read_pilot
from monitorbench.report.write import report
from monitorbench.runs.directory import read_finished
from monitorbench.runs.verdict_log import open_verdict_log, read_verdicts
from monitorbench.scoring.baselines import baselines_of
from monitorbench.scoring.calibrate import read_operating_point
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.training.publish import model_card


def copied(shared: Shared, root: Path) -> Shared:
    """A copy of all that was made, in a folder of its own."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(shared.root, root)
    return shared_below(root, shared.evaluation.name)


def kinds(shared: Shared) -> list[Kind]:
    """All kinds, each with the reader of the stage that reads it next."""
    runs, data = shared.runs, _only(shared.data, "starter-*")
    base = _only(runs / "evaluate", f"{shared.evaluation.name}")
    trained = _only(runs / "train", "*")
    pilot, episodes = _only(runs / "pilot", "*"), _only(runs / "episodes", "*")
    benchmark, calibration = _only(shared.data, "automonitor_bench-*"), _only(runs / "calibrate", "*")
    baselines = _only(runs / "baselines", "*")
    paths = [f"paths.data={shared.data}", f"paths.runs={runs}", f"monitor.path={shared.weights}"]
    paths += ["tracking=none", *JUDGED]
    judging = composed("evaluate", [*paths, *LOCAL, f"monitor.adapter={trained}"])
    untuned = composed("evaluate", [*paths, *LOCAL])
    reporting, scoring = (composed(stage, [*paths, f"run={base}"]) for stage in ("report", "score"))
    piloting = composed("pilot", [*paths[:2], *PILOT])
    answers = _answers(shared.root / "answers" / "answers.jsonl")

    def page() -> bytes:
        report(reporting)
        return (base / "report.html").read_bytes()

    def stopped() -> Any:
        with open_verdict_log(shared.evaluation / "verdicts.jsonl") as log:
            return log.entries

    named = planned_evaluation(untuned, data).run.path.name

    def weights() -> str:
        found = planned_evaluation(untuned, data).run.path.name
        if found != named:  # nothing of the first one's is used: its verdicts, or adapters trained on it
            raise UserError("another model by its hash")
        return found

    def card() -> Any:
        return [
            training_facts(judging.monitor, judging.engine),
            model_card(trained, merged=False, evaluations=()),
        ]

    def adapter() -> Any:
        return planned_evaluation(judging, data).run.path.name

    def decision() -> Any:
        return read_pilot(pilot, read_finished(pilot), runs)

    return [
        Kind(
            "split (Parquet)",
            data / "test" / "part-00000.parquet",
            lambda: [read_split(data, Split.TEST), read_columns(data, Split.TEST)],
        ),
        Kind("data manifest", data / "manifest.json", lambda: read_finished(data)),
        Kind(
            "published prompt",
            benchmark / "prompts" / "direct.txt",
            lambda: published_prompt(benchmark, judging.prompt),
        ),
        Kind(
            "verdicts",
            base / "verdicts.jsonl",
            lambda: [read_evaluation(shared.data, base), read_verdicts(base / "verdicts.jsonl")],
        ),
        Kind("verdicts of a stopped run", shared.evaluation / "verdicts.jsonl", _pending(stopped)),
        Kind("evaluation manifest", base / "manifest.json", lambda: read_evaluation(shared.data, base)),
        Kind("metrics", base / "metrics.json", page),
        Kind("baselines", baselines / "metrics.json", lambda: baselines_of(scoring, data)),
        Kind(
            "operating point", calibration / "operating_point.json", lambda: read_operating_point(calibration)
        ),
        Kind("answers", answers, _pending(lambda: {one.key: one for one in read_answers(answers)})),
        Kind("pilot's episodes", episodes / "episodes.jsonl", lambda: run_live(piloting).outcomes),
        Kind("pilot's outcomes", pilot / "outcomes.jsonl", decision),
        Kind("pilot's decision", pilot / "decision.json", decision),
        Kind(
            "critic data",
            episodes / "critic_data.jsonl",
            lambda: read_critic_data(episodes / "critic_data.jsonl"),
        ),
        Kind("adapter's weights", trained / "adapter" / "adapter_model.safetensors", adapter),
        Kind("adapter's settings", trained / "adapter" / "adapter_config.json", adapter),
        Kind("adapter's base", trained / "adapter" / "base.json", adapter),
        Kind("training manifest", trained / "manifest.json", card),
        Kind("training settings", trained / "config.json", card),
        Kind("learning curve", trained / "learning_curve.json", card),
        Kind("model's weights", shared.weights / "model.safetensors", weights),
    ]


def _pending(entries: Callable[[], Any]) -> Callable[[], Any]:
    """Read a log that a run continues: a line that is gone is asked again, and so is no silent loss."""
    n = len(entries())

    def read() -> Any:
        found = entries()
        if len(found) < n:
            raise UserError(f"{n - len(found)} lines are pending again")
        return found

    return read


def _answers(file: Path) -> Path:
    with open_answer_log(file) as log:
        for number in range(50):
            log.append(
                Elicited(
                    key=f"{number:024x}",
                    request=f"{number:016x}",
                    text=f"The answer is {number}.",
                    finish_reason="stop",
                    prompt_tokens=20,
                    completion_tokens=6,
                    seconds=0.25,
                )
            )
    return file


def _only(folder: Path, pattern: str) -> Path:
    """The one path of that pattern."""
    (found,) = folder.glob(pattern)
    return found
