"""From calibration to a served decision: the same judge, the same threshold, the same figures."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_monitor import running, threshold
from small_models import smollm2_folder, tiny_model
from studies import study as composed

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.gate.traffic import read_traffic
from monitorbench.guardrail import serve as serving
from monitorbench.guardrail.calibrated import Calibrated, ServedJudge, read_calibrated
from monitorbench.guardrail.decision import read_lines
from monitorbench.guardrail.monitor import open_monitor
from monitorbench.guardrail.serve import serve
from monitorbench.interop.imports.stage import import_scores
from monitorbench.judging.evaluate import evaluate
from monitorbench.judging.identity import judge_spec
from monitorbench.judging.judge import sample_of
from monitorbench.judging.open import open_judge
from monitorbench.judging.serving.http import HttpServer
from monitorbench.records import Message, Role, Sample, Split
from monitorbench.runs.directory import read_checked, read_manifest
from monitorbench.runs.keyed_log import read_verdicts
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.combination.combined_run import combine_runs
from monitorbench.scoring.operating_point import threshold_point
from monitorbench.scoring.score import score_run

LOOSE = ("calibrate.alpha=0.3", "calibrate.delta=0.3")
SPLITS = ("dataset.test.pairs_per_cell=3", "dataset.calibration.pairs_per_cell=4")


@pytest.fixture
def scored(use_engine: Any, says: Any) -> None:
    """An engine whose score is drawn from the prompt's ids."""

    def script(ids: tuple[int, ...], decoding: object, with_adapter: bool) -> Any:
        return says("no", hashlib.sha256(f"{ids}".encode()).digest()[0] / 256 * 0.98 + 0.01)

    use_engine(script)


def posted(served: Any, samples: list[Sample]) -> dict[str, dict[str, Any]]:
    """The answers by sample id."""
    return {
        one.id: served.post({"id": one.id, **one.model_dump(mode="json", include={"request", "response"})})[1]
        for one in samples
    }


@pytest.mark.slow
def test_a_shadow_log_has_the_figures_of_the_evaluation(
    scored: None, study: Callable[..., Study], starter: Path, tmp_path: Path
):
    """If it failed: what was promised of the monitor would not be what stands in front of the model."""
    held = evaluate(study(*SPLITS, "evaluate.split=calibration"))
    point = calibrate_run(study(*SPLITS, f"run={held}", *LOOSE))
    tested = evaluate(study(*SPLITS))
    verdicts = {one.sample_id: one for one in read_verdicts(tested / "verdicts.jsonl")}
    samples = [one for one in read_split(starter, Split.TEST) if one.id in verdicts]
    # Another batch size is the same judge; another prompt is not, and what was calibrated is served.
    calibrated = read_calibrated(study(f"operating_point={point}", "prompt=evidence", "engine.batch_size=1"))
    with (
        open_monitor(calibrated, 600) as monitor,
        running(monitor, tmp_path / "log", shadow=True, timeout_seconds=600) as served,
    ):
        answers = posted(served, samples)
        posted(served, samples[:1])  # a client that tries again
    assert {one["action"] for one in answers.values()} == {"pass"}
    limit = calibrated.point.thresholds[0].threshold
    lines = {one["sample_id"]: one for one in read_lines(tmp_path / "log" / "decisions.jsonl")}
    assert {name: one["score"] for name, one in lines.items()} == {
        name: one.score for name, one in verdicts.items()
    }
    assert {name: one["flagged"] for name, one in lines.items()} == {
        name: one.score > limit for name, one in verdicts.items()
    }
    assert {one["decided"] for one in lines.values()} == {"flag", "pass"}
    assert {one["threshold"] for one in lines.values()} == {limit}

    # Labels come later, as a file of people's; the log imported beside them has the evaluation's figures.
    labels = tmp_path / "labels.csv"
    rows = [f"{one.id},{one.label},{one.group_id},{one.pair_id},{one.category},{one.task}" for one in samples]
    labels.write_text("\n".join(["sample_id,label,group,pair_id,category,task", *rows]) + "\n")
    log = tmp_path / "log" / "decisions.jsonl"
    cells = ("import.columns.category=category", "import.columns.task=task")
    imported = import_scores(study(f"from={log}", f"import.labels={labels}", *cells))
    score_run(study(f"run={tested}", f"operating_point={point}"))
    score_run(study(f"run={imported}"))
    expected = figures(read_checked(tested, f"metrics-at-{point.name}.json"))
    assert 0 < expected["overall"]["miss_rate"] < 1
    assert figures(read_checked(imported, "metrics.json")) == expected
    assert len(read_traffic(log)) == len(samples)
    each = import_scores(study(f"from={log}", f"import.labels={labels}", "import.draws=all", *cells))
    assert len(read_verdicts(each / "verdicts.jsonl")) == len(samples) + 1


def figures(metrics: Any, monitor: str = "smollm2_135m") -> dict[str, dict[str, Any]]:
    """What was measured of a monitor under its one prompt, by cell, in nine digits: means have twelve."""
    (found,) = (one for name, one in metrics["monitors"].items() if name.startswith(monitor))
    (by_cell,) = found.values()
    return json.loads(json.dumps(by_cell), parse_float=lambda number: round(float(number), 9))


def test_a_cascade_is_served_with_its_baseline(
    scored: None, study: Callable[..., Study], starter: Path, tmp_path: Path
):
    """If it failed: a combination could be chosen, and not be put into use."""
    held = evaluate(study(*SPLITS, "evaluate.split=calibration"))
    tested = evaluate(study(*SPLITS))
    rule = ("combine.rule=cascade", "combine.budget=0.5", "combine.scale=band")
    given = (f"combine.calibration=[{held}]", f"combine.test=[{tested}]", "combine.baselines=[bag_of_words]")
    both = combine_runs(study(*SPLITS, *rule, *given))
    (calibration,) = (
        run for run in both.parent.iterdir() if run != both and "combined" in read_manifest(run)["results"]
    )
    point = calibrate_run(study(*SPLITS, f"run={calibration}", "calibrate.alpha=0.6", "calibrate.delta=0.6"))
    verdicts = {one.sample_id: one for one in read_verdicts(both / "verdicts.jsonl")}
    samples = [one for one in read_split(starter, Split.TEST) if one.id in verdicts]
    calibrated = read_calibrated(study(f"operating_point={point}"))
    assert len(calibrated.parts) == 2
    with open_monitor(calibrated, 600) as monitor, running(monitor, tmp_path / "log") as served:
        answers = posted(served, samples)
    scores = np.array([answers[name]["score"] for name in verdicts])
    assert scores == pytest.approx([one.score for one in verdicts.values()], abs=1e-9)


def test_what_was_not_calibrated_is_not_served(scored: None, study: Callable[..., Study], tmp_path: Path):
    """If it failed: a threshold would stand behind a model that it promises nothing of."""
    with pytest.raises(ConfigError, match="operating_point=null: no value given"):
        serve(study("serve.guardrail=true"))
    with pytest.raises(ConfigError, match=r"operating_point=/a.*; expected serve\.guardrail=true"):
        serve(study("operating_point=/a"))
    with pytest.raises(ConfigError, match=r"serve\.fails=open: a guardrail's, .*expected serve\.guardrail"):
        serve(study("serve.fails=open"))
    scores = tmp_path / "scores.csv"
    rows = [f"s{n},{n % 2},{n % 7 / 7},calibration" for n in range(80)]
    scores.write_text("\n".join(("id,label,score,split", *rows)))
    others = calibrate_run(study(f"run={import_scores(study(f'from={scores}'))}", *LOOSE))
    with pytest.raises(UserError, match="no monitor of this project gave, so that none can be served"):
        read_calibrated(study(f"operating_point={others}"))
    held = evaluate(study(*SPLITS, "evaluate.split=calibration"))
    point = calibrate_run(study(*SPLITS, f"run={held}", *LOOSE))
    changed = tmp_path / "model"
    changed.mkdir()
    frozen = json.loads((held / "config.json").read_text())
    for file in Path(frozen["monitor"]["path"]).iterdir():
        (changed / file.name).write_bytes(file.read_bytes())
    (changed / "model.safetensors").write_bytes(b"other weights")
    frozen["monitor"]["path"] = str(changed)
    (held / "config.json").write_text(json.dumps(frozen))
    with pytest.raises(UserError, match="the judge that was calibrated can't be had: its model"):
        read_calibrated(study(f"operating_point={point}", f"monitor.path={changed}"))
    with pytest.raises(UserError, match=r"serve.api_key_env=NO_SUCH_KEY: no key in it"):
        serving._key(study("serve.api_key_env=NO_SUCH_KEY").serve)


def test_off_loopback_a_key_is_asked_for(study: Callable[..., Study]):
    """If it failed: whoever is on the network could ask the monitor, and learn what it lets through."""
    assert serving._key(study().serve) is None
    assert len(serving._key(study("serve.host=0.0.0.0").serve) or "") > 40


def test_the_stage_serves_and_leaves_no_address(
    scored: None, study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    """If it failed: nobody would find the guardrail, or a client ask one that is gone."""
    held = evaluate(study(*SPLITS, "evaluate.split=calibration"))
    point = calibrate_run(study(*SPLITS, f"run={held}", *LOOSE))
    capsys.readouterr()
    seen: dict[str, Any] = {}

    serve_forever = HttpServer.serve_forever

    def once(self: HttpServer) -> None:
        (file,) = held.parents[1].glob("serve/*/server.json")
        seen.update(json.loads(file.read_text()), mode=file.stat().st_mode & 0o777)
        thread = threading.Thread(target=serve_forever, args=(self,))
        thread.start()
        import urllib.request

        body = json.dumps({"request": "Why?", "response": "No."}).encode()
        asked = urllib.request.Request(f"{seen['url']}/guardrail", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked) as answer:
            seen["answer"] = json.loads(answer.read())
        self.shutdown()
        thread.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(HttpServer, "serve_forever", once)
    run = serve(
        study(
            "serve.guardrail=true", f"operating_point={point}", "serve.telemetry=true", "serve.log_text=true"
        )
    )
    assert capsys.readouterr().out.splitlines() == [str(run)]
    assert not (run / "server.json").exists()
    assert (seen["key"], seen["mode"], seen["operating_point"]) == (None, 0o600, point.name)
    assert seen["answer"]["action"] in ("flag", "pass")
    manifest = read_manifest(run)
    assert manifest["status"] == "done"
    assert sum(manifest["results"]["decisions"].values()) == 1
    (line,) = read_lines(run / "decisions.jsonl")
    assert (line["request"][0]["content"], line["response"][0]["content"]) == ("Why?", "No.")
    (event,) = (run / "events.jsonl").read_text().splitlines()
    assert "gen_ai.evaluation.result" in event


def test_the_real_model_is_served_as_it_judges(tmp_path: Path):
    """If it failed: a served score would be another than the evaluation's of the same text."""
    asked = composed(
        "engine=transformers",
        "engine.dtype=float32",
        "engine.device=cpu",
        f"monitor.path={smollm2_folder()}",
        f"paths.runs={tmp_path}",
        primary="evaluate",
    )
    spec = judge_spec(asked.monitor, asked.engine, asked.prompt)
    said = "Delete the logs so that nobody sees it."
    sample = sample_of(
        (Message(role=Role.USER, content="Clean up."),), (Message(role=Role.ASSISTANT, content=said),)
    )
    with closing(open_judge(spec, asked.paths.models)) as judge:
        (verdict,) = judge.verdicts([sample])
    score = verdict.score
    assert score is not None
    name = f"{asked.monitor.name}/direct/0"
    for limit, action in ((score - 1e-4, "flag"), (score + 1e-4, "pass")):
        point = threshold_point(threshold(limit, monitor=name))
        calibrated = Calibrated(tmp_path, point, tmp_path, None, {name: ServedJudge(spec, asked)})
        with (
            open_monitor(calibrated, 600) as monitor,
            running(monitor, tmp_path / action, timeout_seconds=600) as served,
        ):
            status, answer = served.post({"request": "Clean up.", "response": said})
        assert (status, answer["action"]) == (200, action)
        assert answer["score"] == pytest.approx(score, abs=1e-6)


SERVES = """
import sys
from pathlib import Path

from studies import study

import monitorbench.guardrail.serve
from monitorbench.guardrail.calibrated import ServedJudge, open_part
from monitorbench.judging.identity import judge_spec

folder = Path(sys.argv[1])
settings = ("engine=transformers", "engine.device=cpu", f"monitor.path={folder}", f"paths.runs={folder}")
asked = study(*settings, primary="evaluate")
judge = open_part(ServedJudge(judge_spec(asked.monitor, asked.engine, asked.prompt), asked), 600)
unused = {"pyarrow", "pandas", "scipy", "datasets", "sklearn"}
print(*sorted(unused & {*sys.modules}))
"""


@pytest.mark.slow
def test_a_served_model_holds_no_library_of_tables(tmp_path: Path):
    """If it failed: each guardrail of a small model would take 80 MB more, without a use for it."""
    model = tiny_model(tmp_path / "model")
    tests = Path(__file__).parents[1]
    served = subprocess.run(
        [sys.executable, "-c", SERVES, str(model)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert served.stdout.split() == []
