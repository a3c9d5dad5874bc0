"""The machine that a model runs on: a usable GPU and its driver, by the system's own files first, and the
numeric type that models get there.

A GPU that exists and can't be used ends the run in one line: a study that was meant for a GPU would take
weeks on the CPU before anybody looked. `CUDA_VISIBLE_DEVICES=""` chooses the CPU on purpose.

With `scores: fast`, and in training, `auto` is bfloat16 on a GPU and on CPUs that multiply it in hardware
(AMX or AVX512-BF16), float32 elsewhere: a CPU without these units takes five times as long in bfloat16.
oneDNN's own "bf16 is supported" is no help, since it says so of CPUs that emulate it. `ONEDNN_MAX_CPU_ISA`
takes the units away, here as in oneDNN.
"""

import os
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from monitorbench.config.base import ConfigError, UserError

Device = Literal["auto", "cpu", "cuda"]
Dtype = Literal["auto", "float32", "bfloat16"]
ResolvedDtype = Literal["float32", "bfloat16"]
Precision = Literal["float32", "bfloat16", "bfloat16_batch_invariant"]
Scores = Literal["reproducible", "fast"]

MIN_DRIVER = 580
"""The oldest NVIDIA driver that CUDA 13 runs on without a compatibility package."""
ON_PURPOSE = "for the CPU on purpose set CUDA_VISIBLE_DEVICES="
_ROOT = Path("/")
"""Folder that contains `proc`, `dev` and `sys`."""
_NVIDIA, _DISPLAY = "0x10de", "0x03"
"""A PCI vendor, and how the class of a display or 3D controller begins."""


def is_hidden() -> bool:
    """Return whether `CUDA_VISIBLE_DEVICES` names no device: empty, -1, or Slurm's NoDevFiles."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible is not None and re.match(r"\s*(\d|GPU-|MIG-)", visible) is None


def nvidia_driver() -> str | None:
    """Return the NVIDIA driver's version, "" where there is a GPU but no version, None where there is no
    GPU."""
    try:
        text = (_ROOT / "proc/driver/nvidia/version").read_text()
    except OSError:
        text = ""
    if match := re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", text):
        return match[1]
    if version := asked_of_nvidia_smi("driver_version"):
        return version[0]
    has_files = text or any((_ROOT / "dev").glob("nvidia[0-9]*")) or (_ROOT / "dev/nvidiactl").exists()
    # After an update of the kernel: the tool is there, the card too, and no module is loaded.
    return "" if has_files or (shutil.which("nvidia-smi") and _on_the_bus()) else None


def asked_of_nvidia_smi(field: str) -> list[str]:
    """Return a field of `nvidia-smi --query-gpu` for each GPU; empty where the tool is missing or fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def gpu_memory() -> tuple[float, ...]:
    """Return the bytes of each visible GPU as `nvidia-smi` reports them; empty where it reports none."""
    lines = asked_of_nvidia_smi("index,uuid,memory.total")
    rows = [[cell.strip() for cell in row.split(",")] for row in lines]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = [name.strip() for name in visible.split(",") if name.strip()]
        rows = [row for row in rows if any(row[0] == name or row[1].startswith(name) for name in names)]
    return tuple(float(row[2]) * 2**20 for row in rows if row[2].isdigit())


def main_memory() -> float | None:
    """Return the bytes of this machine's memory; None where the system doesn't say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (OSError, ValueError, AttributeError):
        return None


def _on_the_bus() -> bool:
    for device in (_ROOT / "sys/bus/pci/devices").glob("*"):
        try:
            kind = [(device / name).read_text().strip() for name in ("vendor", "class")]
        except OSError:
            continue
        if kind[0] == _NVIDIA and kind[1].startswith(_DISPLAY):
            return True
    return False


def has_gpu() -> bool:
    """Return whether models run on a GPU on this machine.

    Raises `UserError` where there is a GPU that can't be used: a driver too old, a CPU build of torch.
    """
    return not is_hidden() and _usable()


def runs_on_gpu(device: Device, setting: str = "device") -> bool:
    """Return whether `device` is a GPU on this machine; raises as `has_gpu`, and where `cuda` finds none.

    `setting` is the name of the setting in the error.
    """
    if device == "cpu":
        return False
    uses_gpu = has_gpu()
    if device == "cuda" and not uses_gpu:
        why = "CUDA_VISIBLE_DEVICES hides them" if is_hidden() else "no GPU is seen on this machine"
        raise UserError(f"{setting}=cuda: {why}; expected a machine with a GPU, or {setting}=cpu")
    return uses_gpu


@cache
def _usable() -> bool:
    driver = nvidia_driver()
    if driver is None and not (_ROOT / "dev/kfd").exists():  # AMD's; torch need not be asked
        return False
    if find_spec("torch") is None:
        return False  # whatever needs a model says what to install
    import torch

    if torch.cuda.is_available():
        return True
    if driver is None:
        return False
    raise UserError(unusable(driver, torch.version.cuda))


def unusable(driver: str, torch_cuda: str | None) -> str:
    """Say in one line that there is a GPU with this driver, that torch can't use it, and what to do.

    `torch_cuda` is the CUDA version that torch was built for; None for a CPU build.
    """
    here = f"a GPU is here (NVIDIA driver {driver or 'not loaded'}) and can't be used"
    if not driver:
        do = f"load the driver, {MIN_DRIVER} or newer (`nvidia-smi` says what it lacks)"
    elif int(driver.partition(".")[0]) < MIN_DRIVER:
        do = f"CUDA 13 needs driver {MIN_DRIVER} or newer: update it"
    elif torch_cuda is None:
        do = "torch is a CPU build: install requirements/lock-gpu.txt (`make setup-gpu`)"
    elif not any(os.access(file, os.R_OK | os.W_OK) for file in (_ROOT / "dev").glob("nvidia[0-9]*")):
        do = "its device files can't be opened: ask Slurm for it (cluster.gpus), or the container's `--gpus`"
    else:
        do = f"torch for CUDA {torch_cuda} finds none: see `nvidia-smi` and `monitorbench doctor`"
    return f"{here}: {do}; {ON_PURPOSE}"


_WITHOUT_BF16 = frozenset(
    ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX10_1_256")
)
"""Values of ONEDNN_MAX_CPU_ISA below AVX512_CORE_BF16."""


def resolved_dtype(dtype: Dtype, device: Device) -> ResolvedDtype:
    """Return the type that a model on `device` runs in on this machine; a `dtype` other than `auto` is
    returned as it is.

    Raises `UserError` where `device` is open and there is a GPU that can't be used.
    """
    if dtype != "auto":
        return dtype
    return "bfloat16" if _is_gpu(device) or cpu_multiplies_bf16() else "float32"


def scoring_precision(dtype: Dtype, device: Device, scores: Scores, *, invariant_on_gpu: bool) -> Precision:
    """Return the precision in which an engine computes scores on this machine; it is part of a judge's
    identity.

    `invariant_on_gpu` says that the engine's GPU kernels can give results that no batch changes. Raises
    `ConfigError` for bfloat16 where scores are to be reproducible and the engine has no such kernels.
    """
    if scores == "fast":
        return resolved_dtype(dtype, device)
    if dtype != "float32" and invariant_on_gpu and _is_gpu(device):
        return "bfloat16_batch_invariant"
    if dtype == "bfloat16":
        raise ConfigError(
            "engine.dtype=bfloat16: a score would depend on what its sample is batched with; expected "
            "engine.dtype=auto, or engine.scores=fast, with which no threshold can be calibrated"
        )
    return "float32"


def _is_gpu(device: Device) -> bool:
    return device == "cuda" or (device == "auto" and has_gpu())


def cpu_multiplies_bf16() -> bool:
    """Return whether this CPU has units for bfloat16, and oneDNN may use them."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA") or ""
    return limit.strip().upper() not in _WITHOUT_BF16 and bool({"amx_bf16", "avx512_bf16"} & _cpu_flags())


@cache
def _cpu_flags() -> frozenset[str]:
    """Return the CPU's features, in the words of Linux; empty on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    flags = (line.partition(":")[2] for line in text.splitlines() if line.startswith("flags"))
    return frozenset(next(flags, "").split())
