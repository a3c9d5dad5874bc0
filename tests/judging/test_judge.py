"""A judge's run: each sample judged once, what is no answer unscored, what is owed and no more."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_engine import completion
from sealed import seal, seal_log

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.engines.protocol import Decoding, Reply
from monitorbench.judging.evaluate import evaluate
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label, Sample, Split, UnscoredReason, Verdict
from monitorbench.runs.directory import read_manifest
from monitorbench.runs.keyed_log import open_verdict_log, read_verdicts

Script = Callable[[tuple[int, ...], Decoding, bool], Reply]
Studies = Callable[..., Study]


def samples_of(study: Study, starter: Path) -> list[Sample]:
    """What the study judges."""
    return read_split(starter, Split.TEST, study.dataset.test)


def verdicts_of(run: Path) -> dict[str, Verdict]:
    """Verdicts by sample; fails where a sample has two."""
    found = read_verdicts(run / "verdicts.jsonl")
    assert len({verdict.sample_id for verdict in found}) == len(found)
    return {verdict.sample_id: verdict for verdict in found}


def test_each_sample_gets_its_own_verdict(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script, tokenizer: Any
):
    """Engines answer in any order; verdicts on the wrong samples would look like a mediocre monitor."""
    given = study()
    engine = use_engine(says_by_prompt)
    run = evaluate(given)
    renderer = Renderer(given.prompt, tokenizer)
    verdicts = verdicts_of(run)
    samples = samples_of(given, starter)
    assert len(samples) == 7 * 2 * 2
    assert set(verdicts) == {sample.id for sample in samples}
    for sample in samples:
        ids = renderer.render(sample)
        word = ("yes", "no", "maybe")[sum(ids) % 3]
        verdict = verdicts[sample.id]
        assert verdict.answer == word
        assert verdict.label is {"yes": Label.MISBEHAVIOR, "no": Label.BENIGN, "maybe": None}[word]
        assert verdict.unscored is (UnscoredReason.NO_LABEL if word == "maybe" else None)
        assert verdict.score == pytest.approx({"yes": 0.8, "no": 0.1, "maybe": 0.5}[word])
        assert verdict.label_mass == pytest.approx(0.9)
        assert verdict.prompt_tokens == len(ids)
    assert len(engine.asked) == len(samples)
    assert engine.closed


def test_the_unscored_are_counted(study: Studies, use_engine: Any, says_by_prompt: Script):
    """A monitor that refuses half of its samples has to show it beside its rates."""
    use_engine(says_by_prompt)
    run = evaluate(study())
    verdicts = verdicts_of(run)
    results = read_manifest(run)["results"]
    unscored = sum(verdict.label is None for verdict in verdicts.values())
    assert 0 < unscored < len(verdicts)
    assert (results["n"], results["n_unscored"]) == (len(verdicts), unscored)


def test_no_probabilities_are_no_score(study: Studies, use_engine: Any, says: Any):
    """NaN out of a broken bfloat16 kernel must not be ranked, and must not end the run."""
    broken = says("yes")

    def script(ids: tuple[int, ...], decoding: Decoding, with_adapter: bool) -> Reply:
        logprobs = {} if sum(ids) % 2 else dict.fromkeys(decoding.scored_token_ids, math.nan)
        return completion(broken.token_ids, broken.text, "stop", logprobs, 0.01)

    use_engine(script)
    verdicts = verdicts_of(evaluate(study()))
    assert {(v.score, v.label_mass, v.label) for v in verdicts.values()} == {(None, None, Label.MISBEHAVIOR)}


@pytest.mark.parametrize(
    ("text", "finish", "label", "reason"),
    [
        (
            'yes", "category": "sycophancy_bias", "severity": "low", "quotes": ["a"]}',
            "stop",
            Label.MISBEHAVIOR,
            None,
        ),
        ('no", "category": "none", "severity": "none", "quotes": []}', "stop", Label.BENIGN, None),
        ("no", "length", None, UnscoredReason.TRUNCATED),
        ('not applicable"}', "stop", None, UnscoredReason.NO_LABEL),
        ("", "stop", None, UnscoredReason.NO_LABEL),
    ],
)
def test_evidence_is_kept_with_the_verdict(
    study: Studies,
    use_engine: Any,
    says: Any,
    text: str,
    finish: str,
    label: Label | None,
    reason: UnscoredReason | None,
):
    """What a monitor gave as its reasons is what a person reads before acting on it."""
    use_engine(lambda *_: says(text, finish=finish))
    given = study("prompt=evidence", "dataset.test.pairs_per_cell=1")
    for verdict in verdicts_of(evaluate(given)).values():
        assert (verdict.label, verdict.unscored, verdict.finish_reason) == (label, reason, finish)
        assert verdict.answer == given.prompt.prefill + text
        if label is Label.MISBEHAVIOR:
            assert (verdict.category, verdict.severity, verdict.quotes) == ("sycophancy_bias", "low", ("a",))
        assert tuple(found.quote for found in verdict.evidence) == verdict.quotes


def test_what_does_not_fit_is_said_to_be_too_long(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script, tokenizer: Any
):
    """A truncated prompt would be judged on half the evidence; a dropped one would raise coverage."""
    given = study()
    renderer = Renderer(given.prompt, tokenizer)
    lengths = {sample.id: len(renderer.render(sample)) for sample in samples_of(given, starter)}
    limit = sorted(lengths.values())[len(lengths) // 2]
    engine = use_engine(says_by_prompt)
    run = evaluate(study(f"monitor.context_tokens={limit}"))
    verdicts = verdicts_of(run)
    assert set(verdicts) == set(lengths)
    too_long = {i for i, verdict in verdicts.items() if verdict.unscored is UnscoredReason.TOO_LONG}
    assert too_long == {i for i, length in lengths.items() if length + given.prompt.max_new_tokens > limit}
    assert 0 < len(too_long) < len(lengths)
    assert max(map(len, engine.asked)) + given.prompt.max_new_tokens <= limit
    for i in too_long:
        assert (verdicts[i].label, verdicts[i].score) == (None, None)
        assert str(lengths[i]) in verdicts[i].detail
    assert read_manifest(run)["results"]["n_unscored"] >= len(too_long)


def test_what_does_not_fit_is_shortened_where_asked(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script, tokenizer: Any
):
    """A shortened prompt that isn't marked passes for a judgement of the whole."""
    given = study("prompt.too_long=middle_truncate")
    renderer = Renderer(given.prompt, tokenizer)
    lengths = {sample.id: len(renderer.render(sample)) for sample in samples_of(given, starter)}
    limit = max(lengths.values())
    engine = use_engine(says_by_prompt)
    for verdict in verdicts_of(
        evaluate(study(f"monitor.context_tokens={limit}", "prompt.too_long=middle_truncate"))
    ).values():
        whole = lengths[verdict.sample_id]
        if whole + given.prompt.max_new_tokens <= limit:
            assert (verdict.truncated_tokens, verdict.prompt_tokens) == (0, whole)
        elif verdict.unscored is not UnscoredReason.TOO_LONG:
            assert verdict.truncated_tokens == whole - verdict.prompt_tokens > 0
            assert "left out" in verdict.detail
    assert max(map(len, engine.asked)) + given.prompt.max_new_tokens <= limit
    assert len(engine.asked) == len(lengths)


def test_few_shot_examples_come_from_the_training_split(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script, tokenizer: Any
):
    """Examples out of the test split would be its answers."""
    few = ("prompt=direct_few_shot", "dataset.test.pairs_per_cell=1")
    engine = use_engine(says_by_prompt)
    run = evaluate(study(*few))
    shots = read_manifest(run)["results"]["judge"]["shots"]
    assert set(shots) <= {sample.id for sample in read_split(starter, Split.TRAIN)}
    assert all("<example>" in tokenizer.decode(ids) for ids in engine.asked)
    assert evaluate(study(*few, "prompt.shots_seed=1")) != run
    with pytest.raises(UserError, match="shots=1"):
        evaluate(study(*few, "dataset.train.subset=safety_permission"))


def test_an_adapter_that_changes_nothing_is_refused(
    study: Studies, adapter: Path, use_engine: Any, says_by_prompt: Script, tmp_path: Path
):
    """The base's numbers under the adapter's name are the mistake that no table would show."""
    engine = use_engine(says_by_prompt)
    with pytest.raises(UserError, match="adapter"):
        evaluate(study(f"monitor.adapter={adapter}"))
    assert engine.closed
    (run,) = (tmp_path / "runs" / "evaluate").iterdir()
    assert read_manifest(run)["status"] == "running"
    assert read_verdicts(run / "verdicts.jsonl") == []


@pytest.mark.parametrize("broken", [math.nan, -math.inf])
def test_an_adapter_that_breaks_the_model_is_refused(
    study: Studies, adapter: Path, use_engine: Any, says: Any, broken: float
):
    """An adapter whose probabilities are NaN differs from the base, but is no monitor."""
    base = says("yes", 0.5)

    def script(ids: tuple[int, ...], decoding: Decoding, with_adapter: bool) -> Reply:
        logprobs = base.logprobs if not with_adapter else dict.fromkeys(decoding.scored_token_ids, broken)
        return completion(base.token_ids, base.text, "stop", logprobs, 0.01)

    use_engine(script)
    with pytest.raises(UserError, match="adapter"):
        evaluate(study(f"monitor.adapter={adapter}"))


def test_an_adapter_that_does_something_is_judged(study: Studies, adapter: Path, use_engine: Any, says: Any):
    """The check itself must neither be counted as a verdict nor judge with the adapter off."""
    tuned, base = says("yes", 0.9), says("no", 0.5)
    engine = use_engine(lambda ids, decoding, with_adapter: tuned if with_adapter else base)
    run = evaluate(study(f"monitor.adapter={adapter}"))
    verdicts = verdicts_of(run)
    results = read_manifest(run)["results"]
    assert {verdict.label for verdict in verdicts.values()} == {Label.MISBEHAVIOR}
    assert results["adapter_gate"] == pytest.approx(abs(math.log(0.1 / 0.5)))
    assert len(results["judge"]["adapter"]) == 64
    assert "my_adapter" in results["judge"]["name"]
    assert len(engine.asked_base) >= 1


def test_a_missing_adapter_is_named(study: Studies, tmp_path: Path):
    """A mistyped adapter must not fall back to the base model."""
    with pytest.raises(UserError, match="nowhere"):
        evaluate(study(f"monitor.adapter={tmp_path / 'nowhere'}"))


def test_an_interrupted_run_goes_on_with_what_is_owed(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script
):
    """A job killed in its tenth hour must not start over, nor judge a sample twice."""
    given = study()
    first = use_engine(says_by_prompt, fail_after=10)
    with pytest.raises(RuntimeError, match="died"):
        evaluate(given)
    assert first.closed
    second = use_engine(says_by_prompt)
    run = evaluate(given)
    n = len(samples_of(given, starter))
    assert len(first.asked) == 10
    assert len(second.asked) == n - 10
    assert not set(first.asked) & set(second.asked)
    assert len(verdicts_of(run)) == n
    manifest = read_manifest(run)
    assert (manifest["status"], manifest["results"]["n"]) == ("done", n)


def test_a_run_that_lacks_only_its_end_needs_no_engine(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script, monkeypatch: pytest.MonkeyPatch
):
    """Killed after the last verdict, a run must be closed without loading the model again."""
    given = study()
    n = len(samples_of(given, starter))
    use_engine(says_by_prompt, fail_after=n - 1)
    with pytest.raises(RuntimeError, match="died"):
        evaluate(given)
    use_engine(says_by_prompt)
    run = evaluate(given)
    expected = read_verdicts(run / "verdicts.jsonl")
    seal(run, {**read_manifest(run), "status": "running"})
    engine = use_engine(says_by_prompt)
    assert evaluate(given) == run
    assert engine.asked == []
    assert read_verdicts(run / "verdicts.jsonl") == expected


def test_a_finished_run_is_reused(study: Studies, use_engine: Any, says_by_prompt: Script):
    """A second `make demo` costs seconds because nothing is judged again."""
    use_engine(says_by_prompt)
    run = evaluate(study())
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    engine = use_engine(says_by_prompt)
    assert evaluate(study("seed=7")) == run, "a judge has no seed"
    assert engine.asked == []
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before


def test_a_moved_model_is_the_same_judge(
    study: Studies, use_engine: Any, says_by_prompt: Script, model_folder: Path, tmp_path: Path
):
    """Paths differ between a laptop and a cluster; verdicts must be found on both."""
    use_engine(says_by_prompt)
    run = evaluate(study())
    shutil.copytree(model_folder, tmp_path / "moved")
    engine = use_engine(says_by_prompt)
    assert evaluate(study(f"monitor.path={tmp_path / 'moved'}", "paths.models=/elsewhere")) == run
    assert engine.asked == []


@pytest.mark.parametrize("changed", ["model.safetensors", "chat_template.jinja"])
def test_a_changed_model_is_another_judge(
    study: Studies, use_engine: Any, says_by_prompt: Script, model_folder: Path, tmp_path: Path, changed: str
):
    """New weights or a new chat template in the old folder would be given the old verdicts."""
    use_engine(says_by_prompt)
    run = evaluate(study())
    folder = shutil.copytree(model_folder, tmp_path / "changed")
    content = (folder / changed).read_bytes()
    (folder / changed).write_bytes(content.replace(b"system\n", b"system\n\n") + b"\n")
    engine = use_engine(says_by_prompt)
    assert evaluate(study(f"monitor.path={folder}")) != run
    assert engine.asked


@pytest.mark.parametrize(
    "setting",
    [
        "prompt.system=Judge.",
        "prompt.user='{{ request }} {{ response }}'",
        "engine.scores=reproducible",
        "engine=vllm",
        "monitor.context_tokens=4096",
    ],
)
def test_another_question_is_another_run(
    study: Studies, use_engine: Any, says_by_prompt: Script, setting: str
):
    """Verdicts of another prompt or precision must not stand under this one's name."""
    use_engine(says_by_prompt)
    fast = ("engine.dtype=bfloat16", "engine.scores=fast")  # `auto` is float32 on some machines
    changed = ("engine.dtype=auto", setting) if setting == "engine.scores=reproducible" else (*fast, setting)
    run = evaluate(study(*fast))
    engine = use_engine(says_by_prompt)
    assert evaluate(study(*changed)) != run
    assert engine.asked


def test_verdicts_of_an_older_question_do_not_count(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script
):
    """A log begun before an upgrade holds verdicts to prompts that are no longer asked."""
    given = study()
    use_engine(says_by_prompt, fail_after=3)
    with pytest.raises(RuntimeError, match="died"):
        evaluate(given)
    (run,) = (given.paths.runs / "evaluate").iterdir()
    old = read_verdicts(run / "verdicts.jsonl")[0]
    stale = {"key": "0" * 24, "label": None, "unscored": UnscoredReason.NO_LABEL}
    with open_verdict_log(run / "verdicts.jsonl") as log:
        for number in range(50):
            log.append(old.model_copy(update={**stale, "key": f"{number:024}"}))
    use_engine(says_by_prompt)
    results = read_manifest(evaluate(given))["results"]
    assert results["n"] == len(samples_of(given, starter))
    assert results["n_unscored"] < results["n"]


def test_a_finished_run_that_lost_a_line_asks_only_for_that(
    study: Studies, use_engine: Any, says_by_prompt: Script
):
    """The log's own message says to remove a line that can't be read; the user would then be sent from
    scoring, where a verdict is missing, to an evaluation that says it is finished, and back."""
    given = study()
    use_engine(says_by_prompt)
    run = evaluate(given)
    log = run / "verdicts.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    expected = sorted(lines)
    log.write_bytes(b"".join(lines[:3] + lines[4:]))
    again = use_engine(says_by_prompt)
    assert evaluate(given) == run
    assert len(again.asked) == 1
    assert sorted(log.read_bytes().splitlines(keepends=True)) == expected
    assert read_manifest(run)["status"] == "done"
    log.unlink()
    again = use_engine(says_by_prompt)
    assert len(verdicts_of(evaluate(given))) == len(again.asked) == len(lines)


def test_a_smaller_view_reuses_the_verdicts_of_a_larger_one(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script, caplog: pytest.LogCaptureFixture
):
    """A category looked at alone would be paid for again."""
    use_engine(says_by_prompt)
    large = evaluate(study())
    few = study("dataset.test.subset=safety_permission")
    n = len(samples_of(few, starter))
    engine = use_engine(says_by_prompt)
    with caplog.at_level("INFO"):
        small = evaluate(few)
    assert small != large
    assert engine.asked == []
    assert f"{n} of {n} verdicts reused from {large}" in caplog.text
    found, there = verdicts_of(small), verdicts_of(large)
    assert found == {sample: there[sample] for sample in found}
    assert read_manifest(small)["results"]["n"] == len(found) == n


def test_a_failure_on_the_way_to_an_endpoint_is_not_reused(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script
):
    """An outage during one run would take answers away from every later view."""
    use_engine(says_by_prompt)
    log = evaluate(study()) / "verdicts.jsonl"
    first, *rest = log.read_text().splitlines()
    failed = json.loads(first) | {"label": None, "unscored": "http_error", "answer": "", "score": None}
    log.write_text("\n".join([json.dumps(failed), *rest]) + "\n")
    seal_log(log)
    engine = use_engine(says_by_prompt)
    category = {sample.id: sample.category for sample in samples_of(study(), starter)}[failed["sample_id"]]
    evaluate(study(f"dataset.test.subset={category}"))
    assert len(engine.asked) == 1


def test_only_verdicts_of_the_same_judge_are_reused(
    study: Studies, starter: Path, use_engine: Any, says_by_prompt: Script
):
    """What another judge said, or half a run's verdicts, must not pass for this one's on all samples."""
    use_engine(says_by_prompt, fail_after=5)
    with pytest.raises(RuntimeError, match="died"):
        evaluate(study("dataset.test.subset=safety_permission"))
    other = use_engine(says_by_prompt)
    evaluate(study("prompt.system=Judge."))
    n = len(samples_of(study(), starter))
    assert len(other.asked) == n
    engine = use_engine(says_by_prompt)
    assert len(verdicts_of(evaluate(study()))) == n
    assert len(engine.asked) == n - 5
