"""SmolLM2 as a judge by our own engine, and its distribution by transformers alone to compare with."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from small_models import smollm2_folder
from transformers import AutoModelForCausalLM, PreTrainedTokenizerBase

from monitorbench.config.study import Prompt, Study
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.judging.identity import judge_spec
from monitorbench.judging.logged import open_logged
from monitorbench.prompts.render import Renderer
from monitorbench.records import Sample, Verdict
from monitorbench.runs.keyed_log import open_failure_log, open_verdict_log


class JudgedBySmolLM2(NamedTuple):
    """Verdicts in float32, and what it takes to reckon their scores by another road."""

    verdicts: list[Verdict]
    prompt: Prompt
    tokenizer: PreTrainedTokenizerBase
    renderer: Renderer
    model: torch.nn.Module

    def next_token(self, ids: Sequence[int], positions: int = 1) -> torch.Tensor:
        """Probabilities of the next token behind each of the last positions [positions, tokens]."""
        with torch.inference_mode():
            logits = self.model(torch.tensor([list(ids)])).logits[0, -positions:]
        return logits.double().softmax(-1)

    def assert_scored_by(self, verdict: Verdict, ids: Sequence[int]) -> None:
        """The score and the label mass are those of the label's tokens behind these ids."""
        (p,) = self.next_token(ids)
        tokens = self.renderer.label_tokens
        bad, good = (float(p[list(one)].sum()) for one in (tokens.misbehavior, tokens.benign))
        assert verdict.score == pytest.approx(bad / (bad + good), abs=2e-4)
        assert verdict.label_mass == pytest.approx(bad + good, abs=2e-4)


@cache
def reference() -> torch.nn.Module:
    """Load the model as transformers does, once a process. Never changed."""
    return AutoModelForCausalLM.from_pretrained(smollm2_folder(), dtype=torch.float32)


@pytest.fixture
def judged_by_smollm2(compose_study: Callable[..., Study], tmp_path: Path) -> Callable[..., JudgedBySmolLM2]:
    """`judged_by_smollm2(samples, "prompt=graded")`."""

    def judged(samples: Sequence[Sample], *overrides: str) -> JudgedBySmolLM2:
        asked = compose_study("evaluate", *overrides, "engine=transformers", "engine.dtype=float32")
        folder = smollm2_folder()
        monitor = asked.monitor.model_copy(update={"path": folder, "package": None})
        with (
            open_verdict_log(tmp_path / "v.jsonl") as log,
            open_failure_log(tmp_path / "f.jsonl") as failures,
            open_logged(judge_spec(monitor, asked.engine, asked.prompt), tmp_path, log, failures) as judge,
        ):
            verdicts = judge.verdicts(samples)
        tokenizer = load_tokenizer(folder)
        renderer = Renderer(asked.prompt, tokenizer)
        return JudgedBySmolLM2(verdicts, asked.prompt, tokenizer, renderer, reference())

    return judged
