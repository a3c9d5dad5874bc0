"""Judging 200 paired samples, beside raw vLLM, lm-evaluation-harness and Inspect AI; and start-up times.

`engine`: `engine=vllm` against `vllm.LLM.generate` on the same token ids, and what ordering the requests
spares. `peers`: clients of one running server; lm-eval and Inspect get an environment of their own in
`.venv-peers`, made from `requirements/peers.txt` when it isn't there. `start`: `import monitorbench` and
every script's `--help`. Each part is a process of its own, sides alternate, and a part that can't be had
is skipped with its reason.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT, Ratio, Result, apart, timed


def main(work: Path, *, parts: str, start_runs: int, settings: list[str]) -> Result:
    """Measure the parts, each in its process."""
    rows: dict[str, Mapping[str, float]] = {}
    ratios: dict[str, Ratio] = {}
    details: dict[str, Any] = {}
    settings = ["dataset.test.pairs_per_cell=15", f"paths.data={work / 'data'}", *settings]
    for part in parts.split(","):
        if part not in ("engine", "peers", "start"):
            raise SystemExit(f"--parts: no part {part}; expected some of engine,peers,start")
        try:
            result = start_up(start_runs) if part == "start" else _apart(part, work, settings)
        except SystemExit as reason:
            print(f"{part}: skipped, {reason}")
            details[part] = {"skipped": str(reason)}
            continue
        rows, ratios = {**rows, **result.rows}, {**ratios, **result.ratios}
        details[part] = result.details
    return Result(rows, ratios, details)


def _apart(part: str, work: Path, settings: list[str]) -> Result:
    rows, ratios, details = json.loads(apart(f"evaluate_{part}:measure", work, settings).output)
    return Result(rows, {name: Ratio(*ratio) for name, ratio in ratios.items()}, details)


def start_up(n_runs: int) -> Result:
    """Seconds of `import monitorbench`, less an interpreter's own, and of every script's `--help`."""
    python = [sys.executable, "-c"]
    commands = {"an interpreter": [*python, "pass"], "import": [*python, "import monitorbench"]}
    for folder in ("data_build", "train", "eval"):
        for script in sorted((ROOT / folder).glob("*.py")):
            commands[f"{folder}/{script.name} --help"] = [sys.executable, str(script), "--help"]
    fastest = dict.fromkeys(commands, float("inf"))
    for _ in range(n_runs):
        for name, command in commands.items():
            seconds, _ = timed(lambda command=command: _run(command))  # type: ignore[misc]
            fastest[name] = min(fastest[name], seconds)
    helps = [seconds for name, seconds in fastest.items() if name.endswith("--help")]
    importing = fastest["import"] - fastest["an interpreter"]
    rows = {f"{name}, the fastest of {n_runs}": {"seconds": s} for name, s in fastest.items()}
    ratios = {"import monitorbench, s": Ratio(importing, most=0.15)}
    return Result(rows, {**ratios, "slowest --help, s": Ratio(max(helps), most=0.8)})


def _run(command: list[str]) -> None:
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
