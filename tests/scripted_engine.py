"""A judge without a model: real data, real tokenizer, real log; the completions are scripted.

The fixtures are imported by the conftest of every room that evaluates without a model.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from monitorbench.config.study import Study
from monitorbench.engines.protocol import Decoding, Reply

Script = Callable[[tuple[int, ...], Decoding, bool], Reply]


def completion(
    token_ids: tuple[int, ...],
    text: str,
    finish_reason: str,
    logprobs: Mapping[int, float],
    seconds: float,
    stop_token_id: int | None = None,
    prompt_tokens: int = 0,
) -> Reply:
    """What an engine generated; `ScriptedEngine` says itself for how many tokens."""
    return Reply(
        text,
        finish_reason,
        prompt_tokens=prompt_tokens,
        completion_tokens=len(token_ids),
        token_ids=token_ids,
        logprobs=logprobs,
        seconds=seconds,
        stop_token_id=stop_token_id,
    )


@dataclass
class ScriptedEngine:
    """An `Engine` that answers by script, last prompt first, and remembers what it was asked."""

    script: Script
    fail_after: int | None = None
    asked: list[tuple[int, ...]] = field(default_factory=list)
    asked_base: list[tuple[int, ...]] = field(default_factory=list)
    asked_again: list[tuple[int, ...]] = field(default_factory=list)
    """Prompts that came a second time, alone: an evaluation measures so whether scores depend on batches."""
    closed: bool = False
    taken: list[Path | None] = field(default_factory=list)

    def take(self, adapter: Path | None) -> None:
        """See `monitorbench.engines.protocol.Engine`."""
        self.taken.append(adapter)

    def complete(
        self, prompts: Sequence[Sequence[int]], decoding: Decoding, *, with_adapter: bool = True
    ) -> Iterator[tuple[int, Reply]]:
        """See `monitorbench.engines.protocol.Engine`."""
        for given, index in enumerate(reversed(range(len(prompts)))):
            if self.fail_after is not None and given >= self.fail_after:
                raise RuntimeError("the machine died")
            ids = tuple(prompts[index])
            is_again = with_adapter and len(prompts) == 1 and ids in self.asked
            of_adapter = self.asked_again if is_again else self.asked
            (of_adapter if with_adapter else self.asked_base).append(ids)
            yield index, replace(self.script(ids, decoding, with_adapter), prompt_tokens=len(ids))

    def close(self) -> None:
        """See `Engine`."""
        self.closed = True


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    """What `monitor.path` may name: a tokenizer, and a file in place of the weights."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """A PEFT folder by its looks."""
    folder = tmp_path / "my_adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text('{"r": 12}')
    (folder / "adapter_model.safetensors").write_bytes(b"adapter")
    return folder


@pytest.fixture
def study(
    compose_study: Callable[..., Study], starter: Path, model_folder: Path, tmp_path: Path
) -> Callable[..., Study]:
    """A study over two pairs of each cell of the starter, on the model folder."""

    def made(*overrides: str) -> Study:
        return compose_study(
            "evaluate",
            f"paths.data={starter.parent}",
            f"paths.runs={tmp_path / 'runs'}",
            f"monitor.path={model_folder}",
            "dataset.test.pairs_per_cell=2",
            *overrides,
        )

    return made


@pytest.fixture
def use_engine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedEngine]:
    """Have `evaluate` open a scripted engine."""

    def used(script: Script, fail_after: int | None = None) -> ScriptedEngine:
        engine = ScriptedEngine(script, fail_after)
        monkeypatch.setattr("monitorbench.engines.open.open_engine", lambda *_: engine)
        return engine

    return used


@pytest.fixture(scope="session")
def says(tokenizer: Any) -> Callable[..., Reply]:
    """Make a completion that reads `text`, with probability `mass` on labels and `p` of it on yes."""
    yes, no = (tokenizer(word).input_ids[0] for word in ("yes", "no"))

    def made(text: str, p: float = 0.7, finish: str = "stop", mass: float = 0.9) -> Reply:
        logprobs = dict.fromkeys(range(len(tokenizer)), -math.inf)
        logprobs |= {yes: math.log(mass * p), no: math.log(mass * (1 - p))}
        return completion(tuple(tokenizer(text).input_ids), text, finish, logprobs, 0.01)

    return made


@pytest.fixture(scope="session")
def says_by_prompt(says: Callable[..., Reply]) -> Script:
    """Answer by the prompt's own ids, so that a verdict on the wrong sample is seen."""
    answers = {word: says(word, p) for word, p in (("yes", 0.8), ("no", 0.1), ("maybe", 0.5))}

    def script(ids: tuple[int, ...], decoding: Decoding, with_adapter: bool) -> Reply:
        return answers[("yes", "no", "maybe")[sum(ids) % 3]]

    return script
