"""A GPU that is there and can't be used ends a run, whatever hides it, on made-up machines."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitorbench.config import hardware
from monitorbench.config.base import UserError
from monitorbench.config.hardware import resolved_dtype

OLD = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri Jan 24 02:41:04\nGCC version: 12\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\nGCC version: 12\n"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose `proc`, `dev` and `sys` hold just what is put there, without a variable set."""
    monkeypatch.setattr(hardware, "_ROOT", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    hardware._usable.cache_clear()
    yield tmp_path
    hardware._usable.cache_clear()


def put(root: Path, name: str, text: str = "") -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def smi(folder: Path, answer: str, code: int = 0) -> None:
    """An `nvidia-smi` that answers so."""
    put(folder, "nvidia-smi", f"#!/bin/sh\necho '{answer}'\nexit {code}\n").chmod(0o755)


@pytest.mark.parametrize(
    ("text", "tool", "version"),
    [
        (OLD, None, "570.86.15"),
        (OPEN, None, "580.95.05"),
        ("", ("570.86.15", 0), "570.86.15"),  # the tool is asked where proc says nothing
        ("", ("NVIDIA-SMI has failed", 9), None),  # images carry the tool to machines without a card
    ],
)
def test_the_driver_is_read(machine, text, tool, version):
    """Both of NVIDIA's kernel modules write a line of their own; a failing tool alone is no GPU."""
    if text:
        put(machine, "proc/driver/nvidia/version", text)
    if tool:
        smi(machine / "bin", *tool)
    assert hardware.nvidia_driver() == version
    if version is None:
        assert not hardware.has_gpu()


def test_a_card_whose_module_is_not_loaded_is_seen(machine):
    """After an update of the kernel a study would otherwise run on the CPU for a week."""
    pytest.importorskip("torch")
    smi(machine / "bin", "NVIDIA-SMI has failed", code=9)
    put(machine, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    put(machine, "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    with pytest.raises(UserError, match="not loaded"):
        hardware.has_gpu()


@pytest.mark.skipif("torch" not in sys.modules and not hardware.find_spec("torch"), reason="no torch")
class TestWithoutCuda:
    """The torch of this machine finds no GPU, as one finds none under a driver that is too old."""

    @pytest.fixture(autouse=True)
    def _blind(self, machine, monkeypatch):
        import torch

        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        self.root = machine

    def test_an_old_driver_is_named(self):
        """The line says which driver it is, which it has to be, and how to run without."""
        put(self.root, "proc/driver/nvidia/version", OLD)
        for ask in (hardware.has_gpu, lambda: resolved_dtype("auto", "auto")):
            with pytest.raises(UserError, match=r"570\.86\.15.*580 or newer.*CUDA_VISIBLE_DEVICES") as raised:
                ask()
            assert "\n" not in str(raised.value)

    def test_the_cpu_on_purpose_is_the_cpu(self, monkeypatch):
        """Whoever says so is not stopped: by a setting, or by hiding the GPUs."""
        put(self.root, "proc/driver/nvidia/version", OLD)
        assert not hardware.runs_on_gpu("cpu")
        assert resolved_dtype("auto", "cpu") in ("float32", "bfloat16")
        for hidden in ("", "-1", "NoDevFiles"):
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
            assert not hardware.has_gpu()
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-3f,1")
        with pytest.raises(UserError):
            hardware.has_gpu()

    def test_a_machine_without_a_gpu_says_so_where_one_is_asked_for(self):
        """`cuda` on a login node ended in torch's own traceback."""
        assert not hardware.runs_on_gpu("auto")
        with pytest.raises(UserError, match=r"training\.device=cuda: no GPU"):
            hardware.runs_on_gpu("cuda", "training.device")

    def test_device_files_alone_are_a_gpu(self):
        put(self.root, "dev/nvidia0")
        with pytest.raises(UserError, match="not loaded"):
            hardware.has_gpu()


@pytest.mark.parametrize(
    ("driver", "cuda", "what"),
    [
        ("570.86.15", "13.0", "580 or newer"),
        ("580.95.05", None, "CPU build"),
        ("580.95.05", "13.0", "can't be opened"),
        ("", "13.0", "load the driver"),
    ],
)
def test_each_reason_has_its_remedy(machine, driver, cuda, what):
    """One remedy for all would send people to update a driver that is fine."""
    assert what in hardware.unusable(driver, cuda)


def test_a_usable_gpu_is_used(machine, monkeypatch):
    """A driver that is older, under a compatibility package, is torch's to judge."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    put(machine, "proc/driver/nvidia/version", OLD)
    assert hardware.has_gpu()
    assert hardware.runs_on_gpu("cuda")


@pytest.mark.slow
def test_commands_stop_in_one_line(tmp_path):
    """Real torch, real stages: an `nvidia-smi` that names a driver is all that is made up."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine's GPU can be used")
    smi(tmp_path, "570.86.15")
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    for settings in (["evaluate", "tracking=none"], ["train", "training.dtype=float32", "tracking=none"]):
        done = subprocess.run(
            [sys.executable, "-m", "monitorbench.cli", *settings, f"paths.runs={tmp_path}/runs"],
            env=environment,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1, done.stderr
        error = done.stderr.strip().splitlines()[-1]
        assert error.startswith("error: a GPU is here (NVIDIA driver 570.86.15)"), done.stderr
        assert "Traceback" not in done.stderr
