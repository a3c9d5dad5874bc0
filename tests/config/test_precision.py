"""`dtype: auto` on each kind of machine."""

import pytest
from studies import study

from monitorbench.config import engine as precision
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
