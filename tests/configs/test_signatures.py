"""Every setting that is handed to a library is one that the pinned library takes, under the name it takes it.

No GPU is needed for that: what can be imported is, what can't is read from its wheel (`wheel_signatures.py`).
"""

import ast
import dataclasses
import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import studies
import wheel_signatures
from omegaconf import OmegaConf
from studies import study

from monitorbench.config import engine as engines
from monitorbench.config import hardware
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.engine import VllmEngine
from monitorbench.config.load import validate

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
KEPT: dict[str, dict[str, list[str]]] = json.loads(wheel_signatures.KEPT.read_text())
GROUPS = ("monitor", "engine")
NAMES = {group: sorted(file.stem for file in (CONF / group).glob("*.yaml")) for group in GROUPS}
GIVEN = {"recorded": ("monitor.verdicts=v.jsonl",), "served": ("engine.server=mine",)}
"""A value for what a file leaves to the person."""


def keywords(file: str, call: str) -> set[str]:
    """The keyword arguments of the calls of a function, by its last names, in a file of ours."""
    tree = ast.parse((ROOT / "src" / "monitorbench" / file).read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == call]
    assert calls, f"{file} calls no {call}"
    return {keyword.arg for one in calls for keyword in one.keywords if keyword.arg}


def fields(of: type) -> set[str]:
    return {field.name for field in dataclasses.fields(of)}


@pytest.fixture(params=[False, True], ids=["cpu", "gpu"])
def machine(request, monkeypatch):
    """Both kinds of machine, by what the settings are told."""
    from monitorbench.engines import vllm_engine

    for module in (engines, hardware, vllm_engine):
        monkeypatch.setattr(module, "runs_on_gpu", lambda device, setting: request.param)
    monkeypatch.setattr(hardware, "has_gpu", lambda: request.param)
    return request.param


@cache
def composed(group: str, option: str) -> dict[str, Any]:
    """The tree with one option of a group, its interpolations resolved."""
    given = [f"{group}={option}", "tracking=none", *GIVEN.get(option, ())]
    tree: Any = OmegaConf.to_container(studies.composed("train", *given), resolve=True)
    return tree


@pytest.mark.parametrize(("group", "option"), [(group, name) for group in GROUPS for name in NAMES[group]])
def test_an_option_changes_its_own_group_alone(group, option):
    """A monitor that brings an engine with it would undo the engine that was asked for.

    And the pairs below, of which most are put together from two trees, would not be what is composed.
    """
    base, tree = composed("engine", "transformers"), composed(group, option)
    assert {key for key in base.keys() | tree.keys() if base.get(key) != tree.get(key)} <= {group}


@pytest.mark.parametrize("engine", NAMES["engine"])
def test_every_engine_composes_with_every_monitor(engine):
    """A pair that does not compose is met after the data was built."""
    for number, monitor in enumerate(NAMES["monitor"]):
        if NAMES["engine"][number % len(NAMES["engine"])] == engine:  # by Hydra, each at least once
            given = [*GIVEN.get(monitor, ()), *GIVEN.get(engine, ())]
            found = study(f"monitor={monitor}", f"engine={engine}", *given)
        else:
            tree = {**composed("monitor", monitor), "engine": composed("engine", engine)["engine"]}
            found = validate(json.dumps(tree))
        assert found.monitor.name == monitor
        assert isinstance(found.engine, OpenAiEngine) == (not found.engine.takes_token_ids)


@pytest.mark.parametrize("monitor", NAMES["monitor"])
def test_a_monitor_with_weights_states_its_size(monitor):
    """Without, nobody is told that 70B does not fit before 141 GB are fetched."""
    one = study(f"monitor={monitor}", *GIVEN.get(monitor, ())).monitor
    if one.kind == "language_model" and "/" in one.hub_id:
        assert one.parameters
        assert one.parameters >= 1e8
        assert one.weights_bytes is None or 0.3 < one.weights_bytes / one.parameters < 2
        assert one.tensor_parallel_size in (1, 2, 4, 8)
    else:
        assert one.parameters is None


class TestVllm:
    """vLLM 0.32, of which the CPU and the GPU wheel have one source."""

    pytestmark = pytest.mark.vllm

    @pytest.mark.slow
    @pytest.mark.parametrize("monitor", ["smollm2_135m", "llama_3_1_70b", "gpt_oss_120b"])
    @pytest.mark.parametrize("engine", [name for name in NAMES["engine"] if name.startswith("vllm")])
    def test_what_the_engine_is_started_with(self, machine, engine, monitor, tmp_path):
        """A name that vLLM dropped ends every evaluation on the cluster at its first second."""
        pytest.importorskip("vllm")
        from vllm.engine.arg_utils import EngineArgs

        from monitorbench.engines.vllm_engine import llm_settings

        given = study(f"monitor={monitor}", f"engine={engine}")
        assert isinstance(given.engine, VllmEngine)
        config = given.engine.for_monitor(given.monitor.tensor_parallel_size)
        settings = llm_settings(config, tmp_path, given.monitor.context_tokens)
        lora = {"enable_lora": True, "max_lora_rank": 16, "max_loras": 1}
        made = EngineArgs(**settings, **lora)
        assert made.block_size == (16 if machine else 32)
        assert made.enforce_eager is not machine
        assert made.enable_prefix_caching
        assert made.tensor_parallel_size == given.monitor.tensor_parallel_size
        assert ("gpu_memory_utilization" in settings) == machine

    @pytest.mark.slow
    def test_what_the_server_is_started_with(self, machine):
        """The server reads the same as options; it says so in a log that nobody reads."""
        pytest.importorskip("vllm")
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        from monitorbench.judging.serving import vllm_server as server

        given = study("engine=vllm", "monitor=llama_3_1_70b", "engine.tensor_parallel_size=4")
        assert isinstance(given.engine, VllmEngine)
        command = server._command(given.monitor, given.engine, Path("weights"), 8000)
        read = make_arg_parser(FlexibleArgumentParser()).parse_args(command[3:])
        assert read.tensor_parallel_size == 4
        assert read.max_num_batched_tokens == (16384 if machine else 2048)
        assert read.block_size == (16 if machine else 32)

    @pytest.mark.slow
    def test_what_a_prompt_is_decoded_with(self):
        """Log-probabilities that are asked for under an old name are not given, and nothing is scored."""
        vllm = pytest.importorskip("vllm")
        taken = set(inspect.signature(vllm.SamplingParams).parameters)
        assert keywords("engines/vllm_engine.py", "SamplingParams") <= taken

    @pytest.mark.slow
    def test_what_a_served_monitor_is_asked_with(self):
        """A field that the server does not know is ignored there, without a word."""
        pytest.importorskip("vllm")
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

        for name in ("served", "openai"):
            given = study(f"engine={name}", *GIVEN.get(name, ())).engine
            assert isinstance(given, OpenAiEngine)
            sent = {given.max_tokens_field, "logprobs", "top_logprobs", "temperature", *given.extra_body}
            assert sent <= ChatCompletionRequest.model_fields.keys()


class TestTraining:
    """TRL and PEFT of this machine, and those that a GPU's lock names."""

    @pytest.mark.parametrize("training", sorted(file.stem for file in (CONF / "training").glob("*.yaml")))
    def test_what_a_training_is_run_with(self, training, tmp_path):
        """The real `SFTConfig`, of every file's values; `max_steps` stands for what samples decide."""
        pytest.importorskip("trl")
        from monitorbench.training.trainer import arguments

        given = study(f"training={training}").training.for_samples(1000)
        here = given.model_copy(update={"device": "cpu"})
        made = arguments(here, tmp_path, seed=0)
        assert made.max_steps == given.steps
        assert made.learning_rate == given.learning_rate
        assert made.gradient_checkpointing == given.gradient_checkpointing

    def test_the_trainers_arguments_are_those_of_both_versions(self):
        """The GPU's TRL is another one than the CPU's, on which the tests run."""
        trl = pytest.importorskip("trl")
        taken = {name for package in ("trl", "transformers") for name in kept(package)}
        given = keywords("training/trainer.py", "SFTConfig")
        assert given <= fields(trl.SFTConfig)
        assert given <= taken

    def test_the_adapters_arguments(self):
        peft = pytest.importorskip("peft")
        assert keywords("training/model.py", "LoraConfig") <= fields(peft.LoraConfig)


class TestUnsloth:
    """It can't be imported without a GPU: its wheel is read."""

    def test_what_a_model_is_loaded_with(self):
        """`use_safetensors` goes through its `**kwargs` to transformers; the others are its own."""
        taken = KEPT[wheel_signatures.pinned("unsloth")]["FastLanguageModel.from_pretrained"]
        assert "**" in taken
        given = keywords("training/stage.py", "fast.from_pretrained")
        assert given - {"use_safetensors"} <= set(taken)

    def test_what_an_adapter_is_made_with(self):
        """Both of its paths take all of it by name: `**kwargs` would swallow a misspelt rank."""
        given = keywords("training/stage.py", "fast.get_peft_model")
        for name in ("FastLlamaModel.get_peft_model", "FastBaseModel.get_peft_model"):
            assert given <= set(KEPT[wheel_signatures.pinned("unsloth")][name])


def test_what_is_kept_is_of_the_lock():
    """After a change of the lock the command in `wheel_signatures.py` writes them anew."""
    assert set(KEPT) == {wheel_signatures.pinned(package) for package in wheel_signatures.WANTED}


@pytest.mark.slow
@pytest.mark.parametrize("package", sorted(wheel_signatures.WANTED))
def test_what_is_kept_is_what_the_wheel_says(package, tmp_path):
    """Where the wheel can be had, of an index or of pip's cache."""
    wheel = wheel_signatures.fetch(package, tmp_path)
    if wheel is None:
        pytest.skip(f"{wheel_signatures.pinned(package)}: no wheel to be had from here")
    assert wheel_signatures.signatures(package, wheel) == KEPT[wheel_signatures.pinned(package)]


def kept(package: str) -> list[str]:
    return [name for names in KEPT[wheel_signatures.pinned(package)].values() for name in names]
