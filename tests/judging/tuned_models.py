"""A tiny model with two adapters that change its answers, and studies that judge with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from monitorbench.config.study import Study
from monitorbench.engines import open as opening
from monitorbench.runs.keyed_log import read_verdicts

Studies = Callable[..., Study]
ENGINE = ("engine=transformers", "engine.dtype=float32", "engine.device=cpu")


def verdicts(run: Path) -> dict[str, tuple[Any, ...]]:
    """By key what an evaluation says of its samples."""
    return {v.key: (v.sample_id, v.label, v.score, v.answer) for v in read_verdicts(run / "verdicts.jsonl")}


@pytest.fixture(scope="session")
def adapters(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two that change the answers, each in its own way."""
    folders = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    for seed, folder in enumerate(folders):
        torch.manual_seed(seed)
        lora = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
        get_peft_model(AutoModelForCausalLM.from_pretrained(tiny), lora).save_pretrained(folder)
    return folders


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The weights that an engine was loaded for, once a load."""
    found: list[Path] = []

    def load(config: Any, weights: Path, *rest: Any, real: Any = opening.open_engine) -> Any:
        found.append(weights)
        return real(config, weights, *rest)

    monkeypatch.setattr(opening, "open_engine", load)
    return found


@pytest.fixture
def asked(study: Studies, tiny: Path, tmp_path: Path) -> Studies:
    def made(runs: str, *overrides: str) -> Study:
        return study(
            f"monitor.path={tiny}",
            f"paths.runs={tmp_path / runs}",
            "dataset.test.subset=[safety_permission/qa]",
            *(overrides if "engine=openai" in overrides else (*ENGINE, *overrides)),
        )

    return made
