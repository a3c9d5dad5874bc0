"""`dtype: auto` on each kind of machine."""

import pytest
from studies import study

from monitorbench.config import hardware as precision
from monitorbench.config.base import ConfigError
from monitorbench.engines.vllm_engine import vllm_environment
from monitorbench.runs.run_folders import training_run

AMX = frozenset({"avx512f", "avx512_bf16", "amx_bf16", "amx_tile"})
ICE_LAKE = frozenset({"avx512f", "avx512_vnni"})


@pytest.fixture
def cpu(monkeypatch):
    """Pretend to be a machine without a GPU whose CPU has these flags."""

    def pretend(flags, limit=None):
        monkeypatch.setattr(precision, "_cpu_flags", lambda: flags)
        monkeypatch.setattr(precision, "has_gpu", lambda: False)
        monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
        monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
        if limit:
            monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)

    return pretend


@pytest.mark.parametrize(
    ("flags", "limit", "expected"),
    [
        (AMX, None, "bfloat16"),
        (frozenset({"avx512_bf16"}), None, "bfloat16"),
        (ICE_LAKE, None, "float32"),
        (frozenset(), None, "float32"),
        (AMX, "AVX512_CORE_VNNI", "float32"),
        (AMX, "avx2", "float32"),
        (AMX, "AVX512_CORE_BF16", "bfloat16"),
        (AMX, "ALL", "bfloat16"),
        (ICE_LAKE, "ALL", "float32"),
    ],
)
def test_auto_is_what_the_cpu_multiplies(cpu, flags, limit, expected):
    """On a CPU without bf16 units the demo took an hour instead of minutes."""
    cpu(flags, limit)
    assert precision.resolved_dtype("auto", "cpu") == expected
    assert precision.resolved_dtype("auto", "auto") == expected


def test_a_gpu_takes_bfloat16_and_what_is_set_stays(cpu, monkeypatch):
    """A GPU that is handed float32 needs twice the memory; a set value is the user's."""
    cpu(frozenset())
    assert precision.resolved_dtype("auto", "cuda") == "bfloat16"
    monkeypatch.setattr(precision, "has_gpu", lambda: True)
    assert precision.resolved_dtype("auto", "auto") == "bfloat16"
    assert precision.resolved_dtype("auto", "cpu") == "float32"
    assert precision.resolved_dtype("float32", "cuda") == "float32"


@pytest.mark.parametrize("flags", [AMX, frozenset({"avx512_bf16"}), ICE_LAKE])
def test_scores_are_reproducible_unless_they_are_to_be_fast(cpu, flags):
    """A judge has one identity, and one score for a text, on every kind of CPU."""
    cpu(flags)
    for kind in ("transformers", "vllm"):
        assert study(f"engine={kind}").engine.precision == "float32"
        fast = study(f"engine={kind}", "engine.scores=fast").engine
        assert fast.precision == fast.resolved_dtype == precision.resolved_dtype("auto", "cpu")
        with pytest.raises(ConfigError, match=r"dtype=bfloat16: .*batched with; .*engine\.scores=fast"):
            study(f"engine={kind}", "engine.dtype=bfloat16").engine.precision  # noqa: B018


def test_a_gpu_has_kernels_that_no_batch_changes_in_vllm_alone(cpu, monkeypatch):
    """Twice the memory for the largest models, or scores that move with a batch, is no choice."""
    pytest.importorskip("vllm")
    cpu(frozenset())
    monkeypatch.setattr(precision, "has_gpu", lambda: True)
    engine = study("engine=vllm").engine
    assert (engine.precision, engine.resolved_dtype) == ("bfloat16_batch_invariant", "bfloat16")
    assert vllm_environment(engine)["VLLM_BATCH_INVARIANT"] == "1"
    fast = study("engine=vllm", "engine.scores=fast").engine
    assert fast.precision == "bfloat16"
    assert vllm_environment(fast)["VLLM_BATCH_INVARIANT"] == "0"
    assert study("engine=vllm", "engine.dtype=float32").engine.precision == "float32"
    assert study("engine=transformers").engine.precision == "float32"
    assert study("engine=vllm_gpu").engine.precision == "bfloat16_batch_invariant"  # as a login node names it


def test_this_machines_flags_agree_with_torch(monkeypatch):
    """Read from the system, so that no stage imports torch for it; torch asks the CPU itself."""
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    has = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    assert precision.cpu_multiplies_bf16() == has


def test_the_resolved_value_names_a_training(cpu):
    """A run made in another precision must not pass for this one."""
    auto, set_so = study("training.dtype=auto"), study("training.dtype=float32")
    cpu(ICE_LAKE)
    slow = training_run(auto, "data", "weights").path.name
    assert slow == training_run(set_so, "data", "weights").path.name
    cpu(AMX)
    assert training_run(auto, "data", "weights").path.name != slow
