"""A probe that reads the model's own pass says what it says alone, and the model what it says alone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_models import smollm2_folder

from monitorbench.config.base import ConfigError
from monitorbench.config.head import Position
from monitorbench.config.study import Study
from monitorbench.engines.open import open_engine, open_model
from monitorbench.engines.protocol import Completion, Decoding, Engine, Tap
from monitorbench.engines.stored.head import read_head
from monitorbench.engines.stored.load import load_tokenizer
from monitorbench.judging.judge import judge_spec, open_judge
from monitorbench.judging.pair.judge import open_judges
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.response_span import response_span
from monitorbench.records import Label, Sample

SCORED = (10, 200, 3000)
OLD_SCORES = 1e-4
"""How far a score may be off."""


@pytest.fixture(scope="module")
def engine(asked: Callable[..., Study]) -> Iterator[Engine]:
    opened = open_engine(asked().engine, smollm2_folder(), [], 8192)
    yield opened
    opened.close()


def alone(asked: Any, samples: list[Sample], head: Path) -> list[float]:
    """The scores of a head that is judged alone."""
    study = asked(f"monitor.head={head}")
    with open_judges(study.monitor, study.engine, study.prompt, study.paths.models) as judges:
        return [judges(sample).score for sample in samples]


@pytest.mark.parametrize("position", ["last", "mean", "max"])
@pytest.mark.parametrize("tokens", [1, 3])
def test_a_padded_batch_is_read_as_each_prompt_alone(
    asked: Any,
    samples: list[Sample],
    heads: dict[Position, Path],
    engine: Engine,
    position: Position,
    tokens: int,
):
    """If it failed: a pair's probe would read padding, another sample's tokens, or what the model answers."""
    study = asked()
    renderer = Renderer(study.prompt, load_tokenizer(smollm2_folder()))
    prompts = [renderer.render(sample) for sample in samples]
    spans = tuple(response_span(renderer, s, ids) for s, ids in zip(samples, prompts, strict=True))
    head = read_head(heads[position])
    plain = Decoding(tokens, (renderer.end_of_turn,), SCORED)
    tapped = Decoding(tokens, (renderer.end_of_turn,), SCORED, tap=Tap(head.read_from.layer, position, spans))
    found: dict[int, Completion] = dict(engine.complete(prompts, tapped))
    scores = [float(head.scores(found[i].states[None])[0]) for i in range(len(prompts))]
    assert scores == pytest.approx(alone(asked, samples, heads[position]), abs=1e-4)
    assert max(scores) - min(scores) > 0.01, "heads that say the same of all would agree in any case"
    for index, completion in engine.complete(prompts, plain):
        assert completion.states is None
        assert completion.token_ids == found[index].token_ids
        assert completion.logprobs == found[index].logprobs


def test_a_request_is_answered_by_both_of_one_pass(
    asked: Any, samples: list[Sample], heads: dict[Position, Path], tmp_path: Path, monkeypatch: Any
):
    """If it failed: a server's verdicts would not be those that thresholds were set on."""
    from monitorbench.runs.verdict_log import open_failure_log, open_verdict_log

    study = asked(f"monitor.head_beside={heads['mean']}")
    with open_judges(study.monitor, study.engine, study.prompt, study.paths.models) as judges:
        found = [judges(sample) for sample in samples]
        too_long = samples[0].model_copy(update={"response": samples[2].response * 200})
        unscored = judges(too_long)
    spec = judge_spec(study.monitor.without_probe(), study.engine, study.prompt)
    with (
        open_verdict_log(tmp_path / "verdicts.jsonl") as log,
        open_failure_log(tmp_path / "failures.jsonl") as failures,
        open_judge(spec, study.paths.models, log, failures) as judge,
    ):
        verdicts = judge.verdicts(samples)
    assert [one.score for one in found] == pytest.approx([one.score for one in verdicts], abs=1e-4)
    assert [one.label for one in found] == [one.label for one in verdicts]
    assert [one.prompt_tokens for one in found] == [one.prompt_tokens for one in verdicts]
    assert [one.probe for one in found] == pytest.approx(alone(asked, samples, heads["mean"]), abs=1e-4)
    assert (unscored.label, unscored.probe, unscored.unscored) == (None, None, "too_long")
    assert "8192" in unscored.detail or "fit" in unscored.detail


def test_the_head_alone_judges_with_its_threshold(
    asked: Any, samples: list[Sample], heads: dict[Position, Path]
):
    """If it failed: a server of the probe alone would say another label than its evaluation."""
    study = asked(f"monitor.head={heads['last']}")
    with open_judges(study.monitor, study.engine, study.prompt, study.paths.models) as judges:
        found = judges(samples[1])
    assert found.label is (Label.MISBEHAVIOR if found.score >= 0.5 else Label.BENIGN)
    assert found.probe is None


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("prompt=evidence",), "prompt=evidence: a probe reads the states in front of the answer"),
        (("prompt.user='{{ response }}\n{{ request }}'",), "fitted with another prompt than direct"),
    ],
)
def test_what_no_probe_can_read_is_refused(
    asked: Any, heads: dict[Position, Path], overrides: tuple[str, ...], said: str
):
    """If it failed: the head would answer, and every answer mean nothing."""
    study = asked(f"monitor.head_beside={heads['last']}", *overrides)
    with (
        pytest.raises(ConfigError, match=said),
        open_judges(study.monitor, study.engine, study.prompt, study.paths.models),
    ):
        pass


def test_a_monitor_has_one_probe_and_nothing_else_on_its_weights(asked: Any, heads: dict[Position, Path]):
    """If it failed: a probe would read an adapter's states, which it was not fitted on."""
    for other in (f"monitor.adapter={heads['last'].parent}", f"monitor.head={heads['last']}"):
        with pytest.raises(ConfigError, match="head_beside: it reads the pass of a base"):
            asked(f"monitor.head_beside={heads['last']}", other)


def test_a_stage_that_reads_a_pass_once_says_so(asked: Any, heads: dict[Position, Path]):
    """If it failed: a pilot's critic would run without the probe, under the same settings."""
    from monitorbench.judging.open import open_prompted

    study = asked(f"monitor.head_beside={heads['last']}")
    with pytest.raises(ConfigError, match=r"only evaluate\.py and serve\.py read a pass twice"):
        open_prompted(study.monitor, study.engine, study.prompt, study.paths.models, "prompt=direct")
    assert open_model  # the model itself knows no probe
