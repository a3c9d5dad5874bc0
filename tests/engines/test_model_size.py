"""A model that does not fit is refused before it is downloaded, with the setting under which it would fit."""

import json
import re

import pytest
from studies import study

from monitorbench.config import hardware
from monitorbench.config.base import UserError
from monitorbench.config.engine import VllmForm
from monitorbench.engines import weights
from monitorbench.engines.open import open_model

H100 = 80 * 2**30
LLAMA_70B = {
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
}


@pytest.fixture
def gpus(monkeypatch):
    """Pretend that there are these GPUs, by their bytes."""

    def pretend(*memory):
        monkeypatch.setattr(weights, "runs_on_gpu", lambda device, setting: bool(memory))
        monkeypatch.setattr("monitorbench.config.engine.runs_on_gpu", lambda device, setting: bool(memory))
        monkeypatch.setattr("monitorbench.config.hardware.has_gpu", lambda: bool(memory))
        monkeypatch.setattr(weights, "gpu_memory", lambda: memory)

    return pretend


FAST = ("engine.dtype=bfloat16", "engine.scores=fast")


def check(*overrides, folder=None):
    given = study(*overrides)
    weights.refuse_too_large(given.monitor, given.engine, folder)


def refusal(*overrides, folder=None) -> str:
    with pytest.raises(UserError) as raised:
        check(*overrides, folder=folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_70b_on_one_gpu_is_told_how_many_it_wants(gpus):
    """vLLM would fetch 141 GB, and then end in a page of its workers' tracebacks."""
    gpus(H100)
    assert "cluster=h100x4" in refusal("monitor=llama_3_1_70b", "engine=vllm")
    said = refusal("monitor=llama_3_1_70b", "engine=vllm", "engine.tensor_parallel_size=1")
    assert "141 GB of weights" in said
    assert "engine.tensor_parallel_size=2 with cluster.gpus=2" in said
    gpus(*[H100] * 4)
    check("monitor=llama_3_1_70b", "engine=vllm")


def test_a_context_that_does_not_fit_is_told_which_would(gpus, tmp_path):
    """On two GPUs the weights of 70B leave room for some of the context; both ways out are named."""
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_70B))
    assert weights.read_cache(tmp_path) == (2 * 2 * 80 * 8 * 128, 8)
    gpus(*[H100] * 2)
    on_two = ("monitor=llama_3_1_70b", "engine=vllm", "engine.tensor_parallel_size=2")
    more = (*on_two, "monitor.context_tokens=131072")
    check(*more)  # before its config is there only the weights count
    said = refusal(*more, folder=tmp_path)
    assert "engine.tensor_parallel_size=4 with cluster.gpus=4" in said
    context = int(re.search(r"monitor\.context_tokens=(\d+)", said)[1])
    check(*more[:-1], f"monitor.context_tokens={context}", folder=tmp_path)
    refusal(*more[:-1], f"monitor.context_tokens={context + 1024}", folder=tmp_path)


def test_windows_and_compressed_caches_are_not_counted_in_full(tmp_path):
    """Counted as if every layer kept everything, models that fit would be refused."""
    file = tmp_path / "config.json"
    kinds = ["sliding_attention", "full_attention"] * 18
    file.write_text(
        json.dumps(
            {
                "num_hidden_layers": 36,
                "layer_types": kinds,
                "num_attention_heads": 64,
                "num_key_value_heads": 8,
            }
            | {"head_dim": 64, "hidden_size": 2880}
        )
    )
    assert weights.read_cache(tmp_path) == (2 * 2 * 18 * 8 * 64, 8)
    file.write_text(json.dumps({"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}))
    assert weights.read_cache(tmp_path) == (2 * 61 * 576, 1)
    file.write_text("{}")
    assert weights.read_cache(tmp_path) is None


@pytest.mark.parametrize(
    ("monitor", "n_gpus", "fits"),
    [
        ("qwen3_4b", 1, True),
        ("gpt_oss_120b", 1, True),
        ("mixtral_8x7b", 1, False),
        ("mixtral_8x7b", 2, True),
        ("deepseek_v3", 8, False),
    ],
)
def test_each_monitors_own_number_of_gpus_is_enough(gpus, monitor, n_gpus, fits):
    """The files say so themselves; 671B in FP8 is not for eight GPUs of 80 GB."""
    gpus(*[H100] * n_gpus)
    if fits:
        check(f"monitor={monitor}", "engine=vllm_gpu")
    else:
        refusal(f"monitor={monitor}", "engine=vllm_gpu")


def test_eight_larger_gpus_hold_deepseek(gpus):
    gpus(*[141 * 10**9] * 8)
    check("monitor=deepseek_v3", "engine=vllm_gpu")


def test_a_cpu_is_asked_for_its_memory(gpus, monkeypatch):
    """Without, a laptop fetches 140 GB and is then killed by its own system."""
    gpus()
    monkeypatch.setattr(weights, "main_memory", lambda: 16e9)
    for engine in ("transformers", "vllm"):
        assert "16 GB" in refusal("monitor=llama_3_1_70b", f"engine={engine}", *FAST)
        check("monitor=smollm2_135m", f"engine={engine}")
    check("monitor=llama_3_1_70b", "monitor.path=mine")  # a folder of one's own: not the named model's size


def test_the_check_comes_before_the_download(gpus, monkeypatch, tmp_path):
    """The whole way in: `open_model` asks for the size before it asks for the weights."""
    gpus(H100)
    monkeypatch.setattr("monitorbench.engines.weights.weights_folder", lambda *_: pytest.fail("downloaded"))
    given = study("monitor=llama_3_1_70b", "engine=vllm")
    with pytest.raises(UserError, match="tensor_parallel_size=4"):
        open_model(given.monitor, given.engine, tmp_path)


def test_the_form_is_the_machines_and_what_is_set_stays(gpus):
    """A study frozen on a login node without a GPU must not run eager, at CPU sizes, on the H100."""
    given = study("engine=vllm", "engine.batch_size=7").engine
    assert isinstance(given.form, VllmForm)
    gpus()
    assert given.form == given.on_cpu.model_copy(update={"batch_size": 7})
    gpus(H100)
    assert given.form == given.on_gpu.model_copy(update={"batch_size": 7})
    assert not given.form.enforce_eager


def test_vllm_gpu_refuses_a_machine_without_one(monkeypatch):
    """`vllm_gpu` on a CPU would take a week without a word."""
    monkeypatch.setattr(hardware, "_usable", lambda: False)
    given = study("monitor=smollm2_135m", "engine=vllm_gpu")
    with pytest.raises(UserError, match=r"engine\.device=cuda"):
        given.engine.form  # noqa: B018 - a property that raises
    with pytest.raises(UserError, match=r"engine\.device=cuda"):
        weights.refuse_too_large(given.monitor, given.engine)


def test_gpus_that_are_hidden_do_not_count(monkeypatch):
    """A job that was given two of eight GPUs has two."""
    monkeypatch.setattr(
        hardware, "asked_of_nvidia_smi", lambda _: [f"{i}, GPU-{i}f, 81559" for i in range(8)]
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert len(hardware.gpu_memory()) == 8
    for visible in ("2,3", "GPU-2f,GPU-3f"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert hardware.gpu_memory() == (81559 * 2**20,) * 2
