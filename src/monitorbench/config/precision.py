"""In which floating-point type a model runs where `dtype: auto` leaves it to the machine.

bfloat16 on a GPU and on CPUs that multiply it in hardware (AMX or AVX512-BF16), float32 elsewhere: a CPU
without these units takes five times as long in bfloat16. oneDNN's own "bf16 is supported" is no help, it
says so of CPUs that emulate it. `ONEDNN_MAX_CPU_ISA` takes the units away, here as in oneDNN.
"""

import os
from functools import cache
from pathlib import Path
from typing import Literal

Dtype = Literal["auto", "float32", "bfloat16"]
ResolvedDtype = Literal["float32", "bfloat16"]
Device = Literal["auto", "cpu", "cuda"]

_WITHOUT_BF16 = frozenset(
    ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX10_1_256")
)
"""Values of ONEDNN_MAX_CPU_ISA below AVX512_CORE_BF16."""
_GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""NVIDIA, AMD, and either inside WSL; without one of them torch need not be imported to know of no GPU."""


def resolved_dtype(dtype: Dtype, device: Device) -> ResolvedDtype:
    """The type that a model on `device` runs in on this machine; what is not `auto` stays as it is."""
    if dtype != "auto":
        return dtype
    on_gpu = device == "cuda" or (device == "auto" and _has_gpu())
    return "bfloat16" if on_gpu or cpu_multiplies_bf16() else "float32"


def cpu_multiplies_bf16() -> bool:
    """Whether this CPU has units for bfloat16, and oneDNN may use them."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA") or ""
    return limit.strip().upper() not in _WITHOUT_BF16 and bool({"amx_bf16", "avx512_bf16"} & _cpu_flags())


@cache
def _cpu_flags() -> frozenset[str]:
    """What the CPU can do, in the words of Linux; empty on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    found = (line.partition(":")[2] for line in text.splitlines() if line.startswith("flags"))
    return frozenset(next(found, "").split())


@cache
def _has_gpu() -> bool:
    if not any(Path(device).exists() for device in _GPU_DEVICES):
        return False
    import torch

    return bool(torch.cuda.is_available())
