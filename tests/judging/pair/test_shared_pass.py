"""A probe that reads the model's own pass says what it says alone, and the model what it says alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pair_heads import LAYER, POSITIONS
from small_models import smollm2_folder

from monitorbench.config.base import ConfigError
from monitorbench.config.training import Position
from monitorbench.engines.open import open_engine
from monitorbench.engines.protocol import Decoding, Request, Tap
from monitorbench.engines.stored.head import read_head
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.engines.transformers_engine import HiddenStates
from monitorbench.judging.identity import judge_spec
from monitorbench.judging.logged import open_logged
from monitorbench.judging.open import open_judge
from monitorbench.judging.serving.pair_server import open_both
from monitorbench.judging.states import response_span
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label, Sample
from monitorbench.runs.keyed_log import open_failure_log, open_verdict_log

SCORED = (10, 200, 3000)


@pytest.fixture(scope="module")
def alone(asked: Any, samples: list[Sample], heads: dict[Position, Path]) -> dict[Position, list[float]]:
    """By position the scores of a head that is judged alone, one prompt at a time."""
    study = asked()
    renderer = Renderer(study.prompt, load_tokenizer(smollm2_folder()))
    reads = HiddenStates(study.engine, smollm2_folder(), (LAYER,), POSITIONS, None)
    pooled = []
    for sample in samples:
        ids = renderer.render(sample)
        span = response_span(renderer, sample, ids)
        pooled.append(reads.states(Request(token_ids=ids, response=span))[0, 0])
    reads.close()
    states = np.stack(pooled)
    return {
        position: read_head(heads[position]).scores(states[:, number]).tolist()
        for number, position in enumerate(POSITIONS)
    }


@pytest.mark.slow
def test_a_padded_batch_is_read_as_each_prompt_alone(
    asked: Any, samples: list[Sample], heads: dict[Position, Path], alone: dict[Position, list[float]]
):
    """If it failed: a pair's probe would read padding, another sample's tokens, or what the model answers."""
    study = asked()
    renderer = Renderer(study.prompt, load_tokenizer(smollm2_folder()))
    prompts = [renderer.render(sample) for sample in samples]
    spans = tuple(response_span(renderer, s, ids) for s, ids in zip(samples, prompts, strict=True))
    plain = Decoding(2, (renderer.end_of_turn,), SCORED)
    engine = open_engine(study.engine, smollm2_folder(), [], 8192)
    untapped = dict(engine.complete(prompts, plain))
    assert {one.states for one in untapped.values()} == {None}
    for position in POSITIONS:
        head = read_head(heads[position])
        tap = Tap(LAYER, position, None, spans)
        found = dict(engine.complete(prompts, replace(plain, tap=tap)))
        scores = [head.suspicion(found[i].states) for i in range(len(prompts))]
        assert scores == pytest.approx(alone[position], abs=1e-4)
        assert max(scores) - min(scores) > 0.01, "heads that say the same of all would agree in any case"
        for index, completion in untapped.items():
            assert completion.token_ids == found[index].token_ids
            assert completion.logprobs == found[index].logprobs
    engine.close()


@pytest.mark.slow
def test_a_request_is_answered_by_both_of_one_pass(
    asked: Any,
    samples: list[Sample],
    heads: dict[Position, Path],
    alone: dict[Position, list[float]],
    tmp_path: Path,
):
    """If it failed: a server's verdicts would not be those that thresholds were set on."""
    study = asked(f"monitor.head_beside={heads['mean']}", "monitor.context_tokens=512")
    with open_both(study.monitor, study.engine, study.prompt, study.paths.models) as judges:
        found = [judges(sample) for sample in samples]
        unscored = judges(samples[0].model_copy(update={"response": samples[2].response * 20}))
    spec = judge_spec(study.monitor.without_probe(), study.engine, study.prompt)
    with (
        open_verdict_log(tmp_path / "verdicts.jsonl") as log,
        open_failure_log(tmp_path / "failures.jsonl") as failures,
        open_logged(spec, study.paths.models, log, failures) as judge,
    ):
        verdicts = judge.verdicts(samples)
    for field in ("label", "prompt_tokens", "key"):
        assert [getattr(one.verdict, field) for one in found] == [getattr(one, field) for one in verdicts]
    assert [one.verdict.score for one in found] == pytest.approx([one.score for one in verdicts], abs=1e-4)
    assert [one.probe.score for one in found] == pytest.approx(alone["mean"], abs=1e-4)
    assert (unscored.verdict.label, unscored.probe, unscored.verdict.unscored) == (None, None, "too_long")
    assert "511 fit" in unscored.verdict.detail


def test_a_server_of_the_head_alone_says_what_it_says(
    asked: Any, samples: list[Sample], heads: dict[Position, Path], alone: dict[Position, list[float]]
):
    """If it failed: a server of the probe alone would say another label than its evaluation."""
    study = asked(f"monitor.head={heads['max']}")
    with open_both(study.monitor, study.engine, study.prompt, study.paths.models) as judges:
        found = [judges(sample) for sample in samples]
    verdicts = [one.verdict for one in found]
    assert [one.score for one in verdicts] == pytest.approx(alone["max"], abs=1e-6)
    assert [one.label is Label.MISBEHAVIOR for one in verdicts] == [one.score >= 0.5 for one in verdicts]
    assert {one.probe for one in found} == {None}


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
        open_both(study.monitor, study.engine, study.prompt, study.paths.models),
    ):
        pass


def test_a_monitor_has_one_probe_and_nothing_else_on_its_weights(asked: Any, heads: dict[Position, Path]):
    """If it failed: a probe would read an adapter's states, which it was not fitted on."""
    for other in (f"monitor.adapter={heads['last'].parent}", f"monitor.head={heads['last']}"):
        with pytest.raises(ConfigError, match="head_beside: it reads the pass of a base"):
            asked(f"monitor.head_beside={heads['last']}", other)


def test_a_stage_that_reads_a_pass_once_says_so(asked: Any, heads: dict[Position, Path]):
    """If it failed: a pilot's critic would run without the probe, under the same settings."""
    study = asked(f"monitor.head_beside={heads['last']}")
    with pytest.raises(ConfigError, match=r"only `evaluate` and `serve` read a pass twice"):
        open_judge(judge_spec(study.monitor, study.engine, study.prompt), study.paths.models)
