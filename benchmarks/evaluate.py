"""Judging 200 paired samples, beside raw vLLM, lm-evaluation-harness and Inspect AI; and start-up times.

    python benchmarks/evaluate.py [--pairs-per-cell 15] [--parts engine,peers,start] [monitor=… engine.…=…]

`engine`: `engine=vllm` against `vllm.LLM.generate` on the same token ids, and what ordering the requests
spares. `peers`: clients of one running server; lm-eval and Inspect get an environment of their own in
`.venv-peers`, made from `requirements/peers.txt` when it isn't there. `start`: `import monitorbench` and
every script's `--help`. Each part is a process of its own, sides alternate, and a part that can't be had
is skipped with its reason. Prints tables and writes `runs/benchmarks/evaluate/ratios.json`.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "runs" / "benchmarks" / "evaluate"
START_RUNS = 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs-per-cell", type=int, default=15, help="15: 202 samples (default)")
    parser.add_argument("--parts", default="engine,peers,start", help="which to measure")
    parser.add_argument("overrides", nargs="*", help="settings, as for eval/evaluate.py")
    asked = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    overrides = [f"dataset.test.pairs_per_cell={asked.pairs_per_cell}", *asked.overrides]
    results: dict[str, Any] = {}
    for part in asked.parts.split(","):
        results[part] = start_up() if part == "start" else in_its_process(part, overrides)
    ratios = {name: value for part in results.values() for name, value in part.get("ratios", {}).items()}
    (WORK / "ratios.json").write_text(json.dumps({"ratios": ratios, "measured": results}, indent=2) + "\n")
    print(f"\n{'ratios':<62} bar")
    for name, (value, bar) in ratios.items():
        print(f"{name:<54} {value:7.2f} {bar}")
    print(WORK)


def in_its_process(part: str, overrides: list[str]) -> dict[str, Any]:
    """Run `evaluate_<part>.py`; what it measured, or why it didn't."""
    out = WORK / f"{part}.json"
    script = ROOT / "benchmarks" / f"evaluate_{part}.py"
    code = subprocess.run(
        [sys.executable, str(script), str(out), *overrides], cwd=ROOT, check=False
    ).returncode
    if code or not out.is_file():
        print(f"{part}: skipped, {script.name} ended with exit code {code}")
        return {"skipped": f"exit code {code}"}
    measured: dict[str, Any] = json.loads(out.read_text())
    return measured


def start_up() -> dict[str, Any]:
    """Seconds of `import monitorbench`, less an interpreter's own, and of every script's `--help`."""
    python = [sys.executable, "-c"]
    empty, imported = alternately([[*python, "pass"], [*python, "import monitorbench"]])
    scripts = sorted(
        script for room in ("data_build", "train", "eval") for script in (ROOT / room).glob("*.py")
    )
    helps = alternately([[sys.executable, str(script), "--help"] for script in scripts])
    rows = {"import monitorbench": imported - empty}
    rows |= {f"{s.parent.name}/{s.name} --help": seconds for s, seconds in zip(scripts, helps, strict=True)}
    print(f"\nstart-up, the fastest of {START_RUNS} (interpreter alone {empty:.3f} s)")
    for name, seconds in rows.items():
        print(f"  {name:<54} {seconds:6.3f} s")
    ratios = {
        "import monitorbench, s": (rows["import monitorbench"], "<= 0.15"),
        "slowest --help, s": (max(helps), "<= 0.8"),
    }
    return {"seconds": rows, "ratios": ratios}


def alternately(commands: list[list[str]]) -> list[float]:
    """The fastest of several runs of each command, in seconds; the commands take turns."""
    fastest = [float("inf")] * len(commands)
    for _ in range(START_RUNS):
        for index, command in enumerate(commands):
            began = time.perf_counter()
            subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
            fastest[index] = min(fastest[index], time.perf_counter() - began)
    return fastest


if __name__ == "__main__":
    main()
