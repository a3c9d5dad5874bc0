"""A forecast: its paces and sums, and beside a real training and evaluation that it was about."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import tiny_model

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of
from monitorbench.engines.weights import parameters_of
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import Split
from monitorbench.studies.forecast import PlannedRun, RunCost, forecast, forecast_lines, print_forecast
from monitorbench.studies.prompt_lengths import PromptCounter, dataset_here
from monitorbench.training.fit_head import fit_head
from monitorbench.training.pace import TrainingPace, assumed_pace, n_validations
from monitorbench.training.sft import train


def results(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "manifest.json").read_text())["results"]
    return found


@pytest.fixture(scope="module")
def asked(
    compose_study: Callable[..., Study], starter: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Study]:
    """A study over the starter with a model that trains in no time."""
    root = tmp_path_factory.mktemp("forecast")
    weights = tiny_model(tmp_path_factory.mktemp("tiny_of_forecast"))

    def made(*overrides: str) -> Study:
        return compose_study(
            "train",
            f"paths.data={starter.parent}",
            f"paths.runs={root / 'runs'}",
            f"monitor.path={weights}",
            "tracking=none",
            "training.max_steps=4",
            "training.validate_every=3",
            "training.device=cpu",
            "engine.device=cpu",
            "dataset.train.pairs_per_cell=6",
            "dataset.validation.pairs_per_cell=1",
            "dataset.test.pairs_per_cell=2",
            *overrides,
        )

    return made


@pytest.mark.slow
def test_a_run_is_forecast_from_the_one_before(asked: Callable[..., Study]):
    """If it failed: hours of a study would be wrong though all of it had been measured."""
    first, second = asked("seed=0"), asked("seed=1")
    (before,) = forecast([PlannedRun("train", first)])
    assert not before.is_finished
    assert "assumed" in before.paced
    assert not first.paths.runs.exists(), "a forecast writes nothing"

    run = train(first)
    measured = results(run)["measured"]
    assert before.samples == 4 * first.training.batch_size
    assert before.validation_tokens == measured["validation_tokens"], "by the same tokenizer, each sample"
    assert before.tokens == pytest.approx(measured["tokens"], rel=0.2), (
        "steps draw the samples that they have"
    )

    there, coming = forecast([PlannedRun("train", first), PlannedRun("train", second)])
    assert there.is_finished
    assert not coming.is_finished
    assert coming.seconds == pytest.approx(
        coming.tokens / measured["tokens"] * measured["seconds"] + measured["validation_seconds"], rel=1e-3
    )
    assert "measured in 1 trainings" in coming.paced
    (line,) = forecast_lines([there, coming])
    assert (line.runs, line.finished, line.samples) == (2, 1, coming.samples)

    base, tuned = asked(), asked(f"monitor.adapter={run}")
    not_trained = asked(f"monitor.adapter={run.parent / 'none-0123456789ab'}")
    judged = evaluate(base)
    took = results(judged)["measured"]
    assert results(judged)["forecast"] is None
    three = forecast([PlannedRun("evaluate", one) for one in (base, tuned, not_trained)])
    assert [one.is_finished for one in three] == [True, False, False]
    assert {one.tokens for one in three} == {took["tokens"]}, "each prompt by the model's own tokenizer"
    assert three[1].seconds == pytest.approx(took["seconds"], abs=0.02)

    again = results(evaluate(tuned))
    assert again["forecast"]["tokens"] == again["measured"]["tokens"] == took["tokens"]
    assert again["forecast"]["seconds"] == pytest.approx(three[1].seconds, abs=0.02)


def test_characters_stand_in_for_a_tokenizer_that_is_not_here(asked: Callable[..., Study]):
    """Without it nothing could be planned on a login node; unsaid, an estimate would pass for a count."""
    exact = asked()
    absent = exact.monitor.model_copy(update={"path": None, "package": None, "hub_id": "nobody/no-model"})
    without = exact.model_copy(update={"monitor": absent})
    (counted,), (estimated,) = (forecast([PlannedRun("evaluate", one)]) for one in (exact, without))
    assert "by its tokenizer" in counted.counted[0]
    assert "by characters" in estimated.counted[0]
    assert estimated.samples == counted.samples
    assert 0.5 < estimated.tokens / counted.tokens < 2


def test_a_fit_is_forecast_by_the_prompts_that_it_reads(asked: Callable[..., Study]):
    """If it failed: whoever plans a probe would be told of other samples than are read."""
    study = asked("head=linear", "head.regularisation=[0.1,1]")
    (before,) = forecast([PlannedRun("fit", study)])
    assert not before.is_finished
    assert "× 2 strengths" in before.counted[-1]
    read = results(fit_head(study))
    assert before.samples == read["n_samples"] + read["n_validation"]
    assert before.tokens > read["tokens"], "those of the validation split, too"
    (after,) = forecast([PlannedRun("fit", study)])
    assert after.is_finished
    with pytest.raises(ConfigError, match="fitted on a base"):
        forecast([PlannedRun("fit", asked("monitor.head=runs/fit/x"))])


@given(steps=st.integers(1, 300), every=st.integers(1, 100), data=st.data())
def test_validations_are_those_that_a_training_makes(steps: int, every: int, data: st.DataObject):
    """If it failed: where a validation takes longer than the steps, the hours would be of something else."""
    from studies import study

    training = study().training.model_copy(update={"max_steps": steps, "validate_every": every})
    done = data.draw(st.integers(0, steps))
    # As `training.processes.EveryFewSteps`: before step 1, every so many, and after the last.
    due = [step for step in range(done + 1, steps + 1) if step % every == 0 or step == steps]
    assert n_validations(training, done) == len(due) + (done == 0)


@given(
    seconds=st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=1, max_size=8),
    gpus=st.integers(0, 8),
)
def test_no_hours_are_said_where_some_are_not_known(seconds: list[float | None], gpus: int):
    """A sum that leaves out what nobody timed would be taken for all of it."""
    works = [
        RunCost("m", "train sft", False, 1, 2.0, 1.0, value, gpus, None, (), "by nobody") for value in seconds
    ]
    (line,) = forecast_lines(works)
    assert (line.tokens, line.cost) == (3.0 * len(works), None)
    if None in seconds:
        assert line.hours is line.gpu_hours is None
    else:
        whole = math.fsum(value for value in seconds if value is not None) / 3600
        assert line.hours == pytest.approx(whole)
        assert line.gpu_hours == pytest.approx(whole * gpus)


@pytest.mark.parametrize("generates", ["monitor=qwen3_4b_thinking", "prompt=evidence", "prompt=graded"])
def test_no_hours_are_assumed_of_answers_that_are_generated(
    compose_study: Callable[..., Study], tmp_path: Path, generates: str
):
    """Thousands of tokens of reasoning were planned as fast as one word."""

    def planned(*overrides: str) -> RunCost:
        folders = (f"paths.data={tmp_path}", f"paths.runs={tmp_path}", "paths.sources=null")
        on_gpu = ("cluster=h100", "engine=vllm_gpu", "dataset=paper", "monitor=qwen3_4b", "prompt=direct")
        (cost,) = forecast([PlannedRun("evaluate", compose_study("evaluate", *on_gpu, *folders, *overrides))])
        return cost

    assert planned().seconds is not None
    one = planned(generates)
    assert one.seconds is None
    assert "an answer generates up to" in one.paced


def test_hours_go_by_the_gpus_that_work_and_by_the_scores(
    compose_study: Callable[..., Study], tmp_path: Path
):
    """A training in one process was planned four times as fast where three more GPUs stood idle.

    And judging with reproducible scores as fast as without.
    """

    def seconds(stage: Literal["train", "evaluate"], *overrides: str) -> float:
        folders = (f"paths.data={tmp_path}", f"paths.runs={tmp_path}", "paths.sources=null")
        on_gpu = ("engine=vllm_gpu", "dataset=paper", "monitor=qwen3_4b", "prompt=direct")
        (cost,) = forecast([PlannedRun(stage, compose_study(stage, *on_gpu, *folders, *overrides))])
        assert cost.seconds is not None
        return cost.seconds

    assert seconds("train", "cluster=h100x4") == seconds("train", "cluster=h100")
    assert seconds("evaluate", "cluster=h100x4") == seconds("evaluate", "cluster=h100")
    spread = seconds("evaluate", "cluster=h100x4", "engine.tensor_parallel_size=4")
    assert 4 * spread == pytest.approx(seconds("evaluate", "cluster=h100"))
    fast = seconds("evaluate", "cluster=h100", "engine.scores=fast")
    assert fast < seconds("evaluate", "cluster=h100") / 2, "float32 is slower, and the default"


def test_what_is_assumed_goes_by_parameters_and_gpus(compose_study: Callable[..., Study]):
    """An 8B model would be planned as fast as one of 4B."""
    one = compose_study("train", "monitor=qwen3_4b", "cluster=h100")
    four = compose_study("train", "monitor=qwen3_8b", "cluster=h100x4")
    fast, other = (
        assumed_pace(one.cluster, one.monitor.parameters),
        assumed_pace(four.cluster, four.monitor.parameters, n_gpus=4),
    )
    assert fast is not None
    assert other is not None
    assert one.monitor.parameters is not None
    assert four.monitor.parameters is not None
    ratio = 4 * one.monitor.parameters / four.monitor.parameters
    assert other.training == pytest.approx(ratio * fast.training)
    assert assumed_pace(one.cluster, None) is None
    assert TrainingPace(2.0, 4.0).seconds(10, 20) == 10.0
    assert TrainingPace(2.0, None).seconds(10, 20) == 15.0


def test_the_paper_s_counts_stand_in_for_data_that_are_not_built(
    compose_study: Callable[..., Study], tmp_path: Path
):
    """On a login node without the data no study could be planned; each number is of the paper itself."""

    def asked(*overrides: str) -> Study:
        return compose_study(
            "transfer",
            "experiment=transfer/paper",
            f"paths.data={tmp_path}",
            "paths.sources=null",
            *overrides,
        )

    counter = PromptCounter(tmp_path)
    whole = counter.count(asked(), Split.TRAIN)
    assert whole.n == 153_581
    assert "not built" in whole.how
    assert counter.count(asked(), Split.TEST).n == 3_010
    parts = [
        counter.count(asked(f"dataset.train.subset={name}"), Split.TRAIN)
        for name in ("safety_permission", "all-safety_permission")
    ]
    assert sum(part.n for part in parts) == whole.n
    assert sum(part.tokens for part in parts) == pytest.approx(whole.tokens)
    short = counter.count(asked("dataset=paper_local"), Split.TRAIN)
    assert 0 < short.n < whole.n
    assert "counted rows" in short.how
    assert not list(tmp_path.iterdir())


def test_data_built_elsewhere_are_found_without_their_raw_files(
    compose_study: Callable[..., Study], tmp_path: Path
):
    """A plan said *not built* of the very dataset that the run then took."""
    here = (f"paths.data={tmp_path}", "paths.sources=null")
    study = compose_study("evaluate", "dataset=paper_local", *here)
    assert dataset_here(study) is None
    directory = directory_of(study)
    with directory.recording(study):
        pass
    found = dataset_here(study)
    assert found is not None
    assert found.path == directory.path
    assert dataset_here(compose_study("evaluate", "dataset=paper", *here)) is None


def test_a_training_that_would_be_refused_is_not_planned(asked: Callable[..., Study], tmp_path: Path):
    """A plan said hours of a training that ends in its first second, or made up its samples."""

    def said(*overrides: str) -> str:
        with pytest.raises((UserError, ConfigError)) as refused:
            forecast([PlannedRun("train", asked(*overrides))])
        return str(refused.value)

    assert re.match(r"training.max_tokens=16: none of \d+ train samples fits", said("training.max_tokens=16"))
    assert "no config.json there" in said("monitor.path=/nope")
    endpoint = ("monitor.path=null", "monitor=gpt_4o_mini")
    assert "gpt-4o-mini is an endpoint's model and has no weights here" in said(*endpoint)
    nothing = (
        "dataset=paper",
        f"paths.data={tmp_path}",
        "paths.sources=null",
        "dataset.train.subset=all-all",
    )
    assert said(*nothing) == "dataset.train.subset=all-all: no sample of dataset=paper is in it"


def test_an_endpoint_s_monitor_is_not_looked_for_on_the_hub(asked: Callable[..., Study]):
    """Its name is no repository: the hub's refusal advised a local folder of a model that nobody can have."""
    study = asked("monitor.path=null", "monitor=gpt_4o_mini")
    for does in (evaluate, lambda one: forecast([PlannedRun("evaluate", one)])):
        with pytest.raises(ConfigError, match="expected that endpoint, such as engine=openai_api"):
            does(study)


def test_a_folder_of_one_s_own_is_timed_by_its_own_size(asked: Callable[..., Study], tmp_path: Path):
    """It was timed with the parameters of the monitor whose settings it was given."""
    from transformers import AutoModelForCausalLM

    study = asked(f"paths.runs={tmp_path}")  # where nothing was timed
    n = AutoModelForCausalLM.from_pretrained(study.monitor.path).num_parameters()
    assert parameters_of(study.monitor) == n != study.monitor.parameters
    (train,) = forecast([PlannedRun("train", study)])
    assumed = assumed_pace(study.cluster, n)
    assert assumed is not None
    assert train.seconds == pytest.approx(assumed.seconds(train.tokens, train.validation_tokens))


def test_other_data_that_are_not_built_are_one_line(compose_study: Callable[..., Study], tmp_path: Path):
    """A forecast of samples that nobody counted would be made up."""
    study = compose_study("evaluate", "dataset=starter", f"paths.data={tmp_path}")
    with pytest.raises(UserError, match=r"dataset=starter is not built.*monitorbench build"):
        forecast([PlannedRun("evaluate", study)])


def test_an_endpoint_s_cost_is_by_its_prices(
    compose_study: Callable[..., Study], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Nobody would know beforehand what a bill comes to."""
    study = compose_study(
        "evaluate",
        "monitor=gpt_4o_mini",
        "engine=openai_api",
        "dataset=paper",
        f"paths.data={tmp_path}",
        f"paths.runs={tmp_path}",
        "paths.sources=null",
        "engine.prices={prompt: 2.0, cached_prompt: null, completion: 10.0}",
    )
    works = forecast([PlannedRun("evaluate", study)])
    (work,) = works
    assert work.cost == pytest.approx((2.0 * work.tokens + 10.0 * work.samples) / 1e6)
    assert work.seconds is None
    print_forecast(works)
    out = capsys.readouterr().out
    assert "no hours" in out
    assert max(map(len, out.splitlines())) <= 80
