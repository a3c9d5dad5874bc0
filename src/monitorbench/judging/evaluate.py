"""Run a judge (prompt × model × adapter × engine) over a dataset's test split, once.

Writes an evaluation run: `verdicts.jsonl`, `failures.jsonl` (requests that got no answer), and a manifest
that says which judge it was. Interrupted, or short of verdicts that it had, it resumes with what is missing;
finished, it is reused. Verdicts that another run of the same judge over the same data has are taken from
there.
"""

import logging
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import Incomplete, UserError
from monitorbench.config.datasets import Dataset
from monitorbench.config.ending import printable
from monitorbench.config.engine import Engine, is_reproducible
from monitorbench.config.evaluation import Evaluate
from monitorbench.config.monitor import Monitor, PromptKind, Router
from monitorbench.config.study import Prompt, Study
from monitorbench.config.training import BASELINE_OBJECTIVE
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.judging.display import judging
from monitorbench.judging.expected import (
    expected,
    forecast_facts,
    in_words,
    measured_facts,
    measured_pace,
)
from monitorbench.judging.identity import (
    NO_SHOTS,
    RECORDED_PROMPT,
    JudgeSpec,
    Route,
    adapter_base,
    judge_spec,
)
from monitorbench.judging.logged import (
    OpensJudge,
    is_done,
    open_logged,
    read_known_verdicts,
    refuse_incomplete,
    runs_of_the_same_judge,
    served_models,
    take_known_verdicts,
    unscored_reasons,
)
from monitorbench.judging.open import open_judge
from monitorbench.judging.reproducible import measure_spread
from monitorbench.judging.router import OWN_CATEGORY, predicted_category
from monitorbench.judging.serving.served import reach
from monitorbench.metrics.score_facts import doubts, facts_of_verdicts
from monitorbench.prompts.few_shot import Shots, draw_shots
from monitorbench.prompts.wording import published_prompt
from monitorbench.records import Sample, Split, UnscoredReason, reasons_in_words
from monitorbench.runs.directory import RunDirectory, read_checked, read_manifest
from monitorbench.runs.files import content_hash
from monitorbench.runs.keyed_log import FAILURES, VERDICTS, open_failure_log, open_verdict_log
from monitorbench.runs.run_folders import evaluation_run
from monitorbench.runs.tracking import tracking

_SHOWN = 60
"""Characters that are shown of an answer which is no label."""
_log = logging.getLogger(__name__)


def evaluate(study: Study, opens: OpensJudge = open_judge) -> Path:
    """Judge the configured view of `evaluate.split`; returns the run directory.

    `opens` opens the judge, for example on an engine that others share (`judging.adapters`).
    A finished run is asked again for the samples that got no answer, and reused where there is still none.

    Raises `UserError` for missing weights, an adapter that changes nothing, a log in use, an endpoint
    that can't be used or whose `max_cost` is spent, or a training split without the examples of a
    few-shot prompt; `Incomplete` where more samples than `engine.max_failed` got no answer.
    """
    data = ensure(study, needed_splits(study.evaluate, study.monitor.router, study.prompt.shots))
    planned = planned_evaluation(reach(study, waits=False), data)
    if planned.done:
        if planned.n_failed:
            _ask_again(study, data)
        _log.info("evaluate: reusing %s", planned.run.path)
        return planned.run.path
    if (reached := reach(study)) is not study:
        study, planned = reached, planned_evaluation(reached, data)
    run = planned.run
    if study.evaluate.split == "calibration" and is_reproducible(planned.judge.identity["dtype"]) is False:
        _log.warning("evaluate: no threshold can be calibrated on these scores: engine.scores=fast")
    if run.done:
        _log.info("evaluate: %s has lost verdicts; these samples are judged again", run.path)
    _judge(study, data, planned, run.recording(study), opens)
    return run.path


def _ask_again(study: Study, data: Path) -> None:
    """Ask for what a finished run lacks; it stays as it is where its endpoint can't be used."""
    if study.engine.server is not None:  # one that has ended is not waited for
        study = study.model_copy(update={"engine": study.engine.model_copy(update={"server_seconds": 0})})
    try:
        study = reach(study)
        planned = planned_evaluation(study, data)
        _judge(study, data, planned, planned.run.amending())
    except Incomplete:
        raise
    except UserError as error:
        _log.warning("evaluate: the samples without an answer stay so: %s", error)


def _judge(
    study: Study,
    data: Path,
    planned: "Planned",
    recorded: AbstractContextManager[dict[str, Any]],
    opens: OpensJudge = open_judge,
) -> None:
    run, name, spec = planned
    samples = _samples(study.evaluate, study.dataset, data)
    # What is missing is an error before the directory is made.
    study.engine.api_key()
    if study.monitor.verdicts is not None:
        from monitorbench.judging.recorded import check_verdicts

        check_verdicts(study.monitor.verdicts, study.monitor.read_as, samples)
    with (
        tracking(study, run.path, "evaluate") as track,
        recorded as results,
        open_verdict_log(run.path / VERDICTS) as log,
        open_failure_log(run.path / FAILURES) as failures,
        open_logged(spec, study.paths.models, log, failures, run=run.path, opens=opens) as judge,
    ):
        keys, questions = judge.pending(samples)
        reusable = read_known_verdicts(runs_of_the_same_judge(run)) if questions else ()
        questions = take_known_verdicts(reusable, questions, log)
        label, priced = f"{name}, {spec.prompt.title}", study.engine.prices is not None
        if questions and not study.monitor.verdicts:
            pace = measured_pace(study.paths.runs, spec.identity)
            coming = expected(questions, spec)
            said = in_words(coming, len(samples), pace, study.engine, judge.spent)
            _log.info("%s, %s of %s: %s", label, study.evaluate.split, data.name, said)
            if not run.done:  # else a finished run is asked again, and keeps what its questions took
                results["forecast"] = forecast_facts(coming, pace, study.engine)
        judge.ask(questions, lambda: judging(label, samples, keys, log, track, priced=priced))
        outcomes = [log.entries.get(key) or judge.failed.get(key) for key in keys]
        if "forecast" in results:
            new_verdicts = [log.entries[one.key] for one in questions if one.key in log.entries]
            results["measured"] = measured_facts(new_verdicts, study.engine)
        if questions or not run.done:
            results["score_spread"] = measure_spread(judge, questions, spec)
        if judge.adapter_change is not None:
            results["adapter_gate"] = judge.adapter_change
        if spec.route is not None:
            results["routed"] = spec.route.counts(samples)
        if base := adapter_base(study.monitor):
            results["adapter_base"] = base
        if not study.engine.takes_token_ids:
            paid = [log.entries[key] for key in keys if key in log.entries]
            paid += [failure.verdict for failure in failures.entries.values()]
            results["cost"] = sum(verdict.cost for verdict in paid)
            results["served_models"] = served_models(log)
        unscored = unscored_reasons(outcomes)
        of_scores = facts_of_verdicts(outcomes)
        unanswered = [one for key, one in zip(keys, outcomes, strict=True) if key not in log.entries]
        results |= {
            "judge": {**spec.identity, "name": name, "prompt": spec.prompt.title},
            "data": data.name,
            "training": training_facts(study.monitor, study.engine),
            "n": len(samples),
            "n_unscored": unscored.total(),
            "unscored": dict(unscored),
            "n_failed": len(unanswered),
            "n_truncated": sum(one is not None and one.truncated_tokens > 0 for one in outcomes),
            "n_logged": len(log.entries),
            "scores": of_scores,
        }
        for line in doubts(of_scores):
            _log.info("%s: %s", label, line)
        if unscored:
            words = reasons_in_words(unscored)
            _log.info("%s: %d of %d unscored: %s", label, unscored.total(), len(samples), words)
        if unscored[UnscoredReason.NO_LABEL] and not study.monitor.verdicts:
            unread = (one.answer for one in outcomes if one and one.unscored is UnscoredReason.NO_LABEL)
            _log.info("%s: %s", label, _expected_words(spec.prompt, next(filter(None, unread), "")))
        refuse_incomplete(run.path, unanswered, len(samples), study.engine.max_failed)


def _expected_words(prompt: Prompt, answer: str) -> str:
    """Say which words an answer was to have, and show the beginning of one that was no label.

    Whoever wrote the judged text may decide what is in it.
    """
    words = prompt.label_words
    expected = f"“{words.misbehavior}” or “{words.benign}” (prompt.label_words)"
    if prompt.kind is PromptKind.GRADED:
        expected = f"a number from 0 to {prompt.highest}"
    received = printable(" ".join(answer.split()))
    shown = f"“{received[:_SHOWN]}{'…' if received[_SHOWN:] else ''}”" if received else "nothing"
    return f"no_label: expected {expected} where the prompt asks for it; one answer: {shown}"


class Planned(NamedTuple):
    """An evaluation before it is run."""

    run: RunDirectory
    """The evaluation's directory, which need not be there yet."""
    name: str
    judge: JudgeSpec

    @property
    def done(self) -> bool:
        """Whether it finished, and its log still has every verdict."""
        return is_done(self.run)

    @property
    def n_failed(self) -> int:
        """How many samples of a finished one got no answer from its endpoint."""
        return int(read_manifest(self.run.path)["results"].get("n_failed", 0))


def planned_evaluation(study: Study, data: Path) -> Planned:
    """Plan the evaluation of this study over the dataset directory `data`; runs no model.

    Raises `UserError` for a missing adapter, `ConfigError` for one behind an endpoint.
    """
    prompt = RECORDED_PROMPT if study.monitor.verdicts else published_prompt(data, study.prompt)
    shots, route = (
        _shots(study.dataset, study.evaluate, prompt, data),
        _route(study.monitor.router, study.dataset, data),
    )
    spec = judge_spec(study.monitor, study.engine, prompt, shots, route)
    name = judge_name(study.monitor, study.engine)
    identity = {
        "data": data.name,
        "split": study.evaluate.split,
        "view": study.dataset.view(study.evaluate.split).model_dump(mode="json"),
        "judge": spec.identity,
    }
    run = evaluation_run(study.paths.runs, name, prompt.title, identity)
    return Planned(run, name, spec)


def needed_splits(evaluate: Evaluate, router: Router | None, shots: int) -> list[Split]:
    """The splits that an evaluation reads: few-shot examples come from the train split."""
    judged = Split(evaluate.split)
    learns = router is not None and router.by == "predicted"
    return [Split.TRAIN, judged] if shots or learns else [judged]


def _samples(evaluate: Evaluate, dataset: Dataset, data: Path) -> list[Sample]:
    split = Split(evaluate.split)
    return read_split(data, split, dataset.view(split.value))


def _shots(dataset: Dataset, evaluate: Evaluate, prompt: Prompt, data: Path) -> Shots:
    """The examples of a few-shot prompt, from the configured view of the train split."""
    if not prompt.shots:
        return NO_SHOTS
    train = read_split(data, Split.TRAIN, dataset.view("train"))
    judged = {sample.category for sample in _samples(evaluate, dataset, data)}
    return draw_shots(train, prompt.shots, prompt.shots_seed, prompt.shot_characters, judged)


def _route(router: Router | None, dataset: Dataset, data: Path) -> Route | None:
    """The route of a router's samples; a classifier learns from the train split's configured view."""
    if router is None:
        return None
    if router.by == "category":
        return OWN_CATEGORY
    view = dataset.view("train")
    fitted_on = f"{data.name}-{content_hash(view.model_dump(mode='json'))}"
    return predicted_category(read_split(data, Split.TRAIN, view), fitted_on)


def judge_name(monitor: Monitor, engine: Engine) -> str:
    """The monitor's name, with what its adapter or probe was trained on, and how if it is no plain adapter.

    Of `engine=served` it is what the server says.
    """
    if engine.serves is not None:
        return engine.model
    if monitor.router is not None:
        return f"{monitor.name}+router"
    on_top = monitor.head or monitor.adapter
    if on_top is None:
        return monitor.name
    facts = training_facts(monitor, engine)
    if facts is None:
        return f"{monitor.name}+{on_top.name}"
    how = "" if facts["objective"] == BASELINE_OBJECTIVE else f"_{facts['objective']}"
    return f"{monitor.name}+{facts['name']}{how}"


def training_facts(monitor: Monitor, engine: Engine) -> dict[str, Any] | None:
    """Facts of the adapter's training run: name, trained_on, seed, objective and learning curve.

    Of a probe what its fit says; there is no curve.
    """
    if engine.serves is not None:
        return engine.serves.training
    if monitor.head is not None:
        return _fit_facts(monitor.head)
    adapter = monitor.adapter
    for folder in (adapter, adapter.parent) if adapter else ():
        if (folder / "manifest.json").is_file() and (folder / "learning_curve.json").is_file():
            manifest = read_manifest(folder)
            return {
                "name": manifest["results"]["name"],
                "trained_on": manifest["results"]["trained_on"],
                "seed": manifest["identity"]["seed"],
                "objective": manifest["identity"].get("training", {}).get("objective", BASELINE_OBJECTIVE),
                "exposures": manifest["results"].get("exposures"),
                "learning_curve": read_checked(folder, "learning_curve.json"),
            }
    return None


def _fit_facts(head: Path) -> dict[str, Any] | None:
    folder = head.parent if head.is_file() else head
    if not (folder / "manifest.json").is_file():
        return None
    manifest = read_manifest(folder)
    return {
        "name": manifest["results"]["name"],
        "trained_on": manifest["results"]["trained_on"],
        "seed": manifest["identity"]["seed"],
        "objective": f"{manifest['identity']['head']['name']}_probe",
        "exposures": None,
        "learning_curve": [],
    }
