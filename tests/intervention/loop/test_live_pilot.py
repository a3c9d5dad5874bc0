"""A whole live pilot: matched, resumed wherever it was stopped, and with an answer that the runs decide."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from corridor import open_corridors

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.intervention.loop import schedule
from monitorbench.intervention.loop.episode import run_episode
from monitorbench.intervention.loop.live import LiveRuns, run_live
from monitorbench.intervention.outcomes import read_outcomes
from monitorbench.intervention.run import run_pilot
from monitorbench.intervention.transcripts import EPISODES, Episode
from monitorbench.runs.keyed_log import read_log

Pilots = Callable[..., Study]
SMALL = (
    "monitor=bag_of_words",
    "agent.error_rate=0.15",
    "pilot.tasks=4",
    "pilot.training_tasks=12",
    "pilot.validation_tasks=8",
    "pilot.seeds=2",
    "pilot.statistics.draws=1000",
)
ALL = "[rollback,append,rollback_uncalibrated,append_uncalibrated,random,oracle,best_of_2]"


@pytest.fixture
def pilot(compose_study: Callable[..., Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pilots:
    """Studies of a pilot in the corridor."""
    monkeypatch.setattr(schedule, "open_tasks", open_corridors)

    def study(*overrides: str) -> Study:
        return compose_study("pilot", *SMALL, f"paths.runs={tmp_path / 'runs'}", *overrides)

    return study


def beside(study: Study, folder: str) -> Study:
    """The same study with its runs in another folder."""
    runs = study.paths.runs.with_name(folder)
    return study.model_copy(update={"paths": study.paths.model_copy(update={"runs": runs})})


def episodes_of(found: LiveRuns) -> list[Episode]:
    """The transcripts, without how long a run took."""
    return [
        episode.model_copy(update={"seconds": 0.0})
        for episode in read_log(found.directory / EPISODES, Episode)
    ]


def test_every_condition_runs_on_the_same_tasks_and_seeds(pilot: Pilots):
    """An unmatched run drops out of the comparison, and with it the power that was paid for."""
    found = run_live(pilot(f"pilot.conditions={ALL}"))
    count = Counter(outcome.condition for outcome in found.outcomes)
    assert set(count) == {"none", *ALL.strip("[]").split(",")}
    assert set(count.values()) == {4 * 2}
    assert len({(o.condition, o.task, o.seed) for o in found.outcomes}) == 8 * 8
    assert {outcome.seed for outcome in found.outcomes} == {0, 1}
    assert read_outcomes(found.directory / "outcomes.jsonl") == found.outcomes
    assert not any(outcome.reason for outcome in found.outcomes)
    alone = {task for task, *_ in found.outcomes}
    trained = read_log(found.directory / "runs_alone.jsonl", Episode)
    assert not alone & {episode.task for episode in trained}
    report = json.loads((found.directory / "critic.json").read_text())
    assert report["before"]["auroc"] == pytest.approx(report["after"]["auroc"])
    assert report["temperature"]["value"] > 0


def test_chance_intervenes_as_often_as_the_critic_did(pilot: Pilots):
    """A control that intervenes less often than the critic is no control."""
    study = pilot("pilot.conditions=[rollback,random]", "pilot.tasks=60", "agent.error_rate=0.3")
    found = run_live(study)
    rate = {}
    for condition in ("rollback", "random"):
        mine = [episode for episode in episodes_of(found) if episode.condition == condition]
        rate[condition] = sum(e.interventions for e in mine) / sum(e.judged_steps for e in mine)
    assert rate["rollback"] > 0.1
    assert rate["random"] == pytest.approx(rate["rollback"], abs=0.08)
    manifest = json.loads((found.directory / "manifest.json").read_text())
    assert manifest["results"]["random_rate"] == pytest.approx(rate["rollback"])


class Killed(BaseException):
    """In place of a power cut."""


def counted(made: list[str], most: int, environment: Any, agent: Any, run: Any, *rest: Any) -> Episode:
    """`run_episode`, which notes what it made and dies after so many runs."""
    if len(made) == most:
        raise Killed
    made.append(run.key)
    return run_episode(environment, agent, run, *rest)


def test_a_pilot_stopped_anywhere_resumes_with_the_run_it_was_at(
    pilot: Pilots, monkeypatch: pytest.MonkeyPatch
):
    """Hours of runs must survive a pre-empted job, and the result must be what it would have been."""
    study = pilot("pilot.conditions=[rollback,random]")
    whole = run_live(study)
    total = 12 + 8 + 4 * 2 * 3
    for after in (0, 12, 19, 20, 33, 36, 43):
        stopped = beside(study, f"stopped-{after}")
        before: list[str] = []
        monkeypatch.setattr(schedule, "run_episode", partial(counted, before, after))
        with pytest.raises(Killed):
            run_live(stopped)
        for log in stopped.paths.runs.rglob("*.jsonl"):
            if log.name in (EPISODES, "runs_alone.jsonl"):
                with log.open("a") as stream:
                    stream.write('{"key": "torn')
        made: list[str] = []
        monkeypatch.setattr(schedule, "run_episode", partial(counted, made, total))
        found = run_live(stopped)
        assert found.outcomes == whole.outcomes
        assert episodes_of(found) == episodes_of(whole)
        assert len(before) == after
        assert not set(before) & set(made), "what was done is not done again"
        assert len(before) + len(made) == total
        assert found.directory.name == whole.directory.name


def test_a_finished_pilot_is_reused_and_other_statistics_cost_no_run(
    pilot: Pilots, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Another margin on the same runs is another decision, not another night of runs."""
    study = pilot()
    first = run_pilot(study)
    said = capsys.readouterr().out
    assert json.loads((first / "decision.json").read_text())["sentence"] in " ".join(said.split())

    def none(*_: Any) -> Any:
        raise AssertionError("a task was opened again")

    monkeypatch.setattr(schedule, "open_tasks", none)
    assert run_pilot(study) == first
    other = run_pilot(pilot("pilot.statistics.margin=5.0"))
    assert other != first
    assert (other / "outcomes.jsonl").read_text() == (first / "outcomes.jsonl").read_text()
    manifest = json.loads((first / "manifest.json").read_text())
    assert manifest["results"]["sentence"] in " ".join(said.split()), "a listing of runs says what was found"
    episodes = Path(manifest["results"]["episodes"])
    assert (episodes / EPISODES).is_file()


def test_one_critic_helps_the_weak_agent_and_hurts_the_strong_one(pilot: Pilots):
    """What the pilot is for (2602.03338): a critic's quality alone does not say which it will be."""
    more = ("pilot.tasks=80", "pilot.seeds=1", "pilot.training_tasks=60", "agent.persistence=0.5")
    often = pilot(*more, "pilot.conditions=[rollback_uncalibrated]")
    source = beside(often, "source")
    data = run_live(source).directory / "critic_data.jsonl"

    def effect(name: str, tau: float, **agent: float) -> dict[str, Any]:
        changed = often.agent.model_copy(update={"name": name, **agent})
        critic = often.pilot.model_copy(update={"critic_data": data, "training_tasks": 0, "tau": tau})
        run = run_pilot(beside(often.model_copy(update={"agent": changed, "pilot": critic}), name))
        decision: dict[str, Any] = json.loads((run / "decision.json").read_text())
        return decision

    weak = effect("weak", 0.3, error_rate=0.3, persistence=0.95, doubt=0.3)
    strong = effect("strong", 0.001, error_rate=0.01, persistence=0.0, doubt=0.95)
    assert (weak["decision"], strong["decision"]) == ("intervene", "do_not_intervene")
    assert weak["p"] > weak["p_star"]
    assert strong["p"] < strong["p_star"]


def test_fewer_tasks_than_asked_for_is_no_pilot(pilot: Pilots, monkeypatch: pytest.MonkeyPatch):
    """A pilot on 10 tasks that says 50 has an interval that nobody planned for."""

    def few(settings: Any, n_tasks: int, seed: int, split: str) -> Any:
        return open_corridors(settings, min(n_tasks, 3), seed, split)

    monkeypatch.setattr(schedule, "open_tasks", few)
    with pytest.raises(UserError, match="3 train tasks, asked for 12"):
        run_live(pilot())


def test_a_file_and_a_recorded_set_at_once_is_refused(compose_study: Callable[..., Study], tmp_path: Path):
    """One of the two would be ignored, and the decision filed under the wrong name."""
    study = compose_study("pilot", "recorded=reflexion_mbpp", f"outcomes={tmp_path / 'x.jsonl'}")
    with pytest.raises(ConfigError, match="expected one"):
        run_pilot(study)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("pilot.conditions=[random]", "expected rollback as well"),
        ("pilot.conditions=[append,append]", "named twice"),
        ("pilot.conditions=[]", "conditions"),
        ("pilot.conditions=[undo]", "conditions"),
        ("pilot.tau=1.5", "pilot.tau=1.5"),
        ("agent.error_rate=2", "agent.error_rate=2"),
        ("pilot.prompt.shots=2", "prompt"),
    ],
)
def test_a_bad_setting_of_the_pilot_is_named(compose_study: Callable[..., Study], override: str, said: str):
    """A night's pilot must not fail in the morning over a typo."""
    with pytest.raises(ConfigError, match=said):
        compose_study("pilot", override)


@pytest.mark.slow
def test_real_games(compose_study: Callable[..., Study], tmp_path: Path):
    """The corridor is ours; a real game has states, words and dead ends that nobody here thought of."""
    pytest.importorskip("textworld", reason="needs the package textworld")
    study = compose_study(
        "pilot",
        "monitor=bag_of_words",
        f"paths.runs={tmp_path / 'runs'}",
        f"paths.data={tmp_path / 'data'}",
        "environment.quest_length=2",
        "environment.rooms=2",
        "agent.error_rate=0.5",
        "agent.persistence=0.8",
        "pilot.step_budget=5",
        "pilot.tau=0.3",
        "pilot.min_step=1",
        "pilot.tasks=2",
        "pilot.training_tasks=4",
        "pilot.validation_tasks=2",
        "pilot.conditions=[rollback,append,oracle]",
    )
    found = run_live(study)
    assert len(found.outcomes) == 2 * 4
    assert not [outcome.reason for outcome in found.outcomes if outcome.reason]
    assert any(outcome.interventions for outcome in found.outcomes)
