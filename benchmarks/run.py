"""Run a benchmark: `python benchmarks/run.py NAME [--tiny] [options] [key=value …]`.

Each measures side by side with its alternative in one run, prints a table, and ratios with their bars, and
writes both to `ratios.json` in `runs/benchmarks/NAME/`. A missed bar is exit code 1; with `--tiny`, which
only shows that everything runs, bars are not applied.
"""

import argparse
import ast
import importlib
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from benchmarks.measuring import Result


class Option(NamedTuple):
    """A number or text that a benchmark takes, and its value for `--tiny`."""

    name: str
    default: int | float | str
    tiny: int | float | str
    meaning: str


class Benchmark(NamedTuple):
    """Options that a benchmark's `main(work, …)` takes by name, and whether it takes settings."""

    options: tuple[Option, ...] = ()
    settings_of: str = ""
    """The script whose settings may follow as `key=value`; empty: none may."""
    tiny_settings: tuple[str, ...] = ()


STARTER = ("dataset.generated_pairs=8", "tracking=none")
JUDGED = (*STARTER, "dataset.test.pairs_per_cell=1", "engine.dtype=float32")
CLIENTS = Option("clients", 16, 2, "clients that ask without a pause")
AT_ONCE = Option("at_once", 200, 4, "requests at the same moment, before the load")

BENCHMARKS: Mapping[str, Benchmark] = {
    "adapters": Benchmark((Option("adapters", 6, 2, "LoRA adapters"),), "eval/evaluate.py", JUDGED),
    "corpus": Benchmark(
        (
            Option("samples", 153_581, 60, "samples of the corpus"),
            Option("sources", "", "truthfulqa,xstest", "real sources, with commas between; all"),
        )
    ),
    "coverage": Benchmark(
        (
            Option("seed", 0, 0, "of the simulations"),
            Option("effort", 1.0, 0.01, "scale of the number of simulated data sets"),
            Option("only", "", "censored,intervals", "parts, with commas between; all"),
            Option("page", "", "", "page whose tables are replaced"),
        )
    ),
    "evaluate": Benchmark(
        (
            Option("parts", "engine,peers,start", "start", "what to measure"),
            Option("start_runs", 3, 1, "runs of each command whose start-up is timed"),
        ),
        "eval/evaluate.py",
        (*JUDGED, "engine.enforce_eager=true"),
    ),
    "gpu": Benchmark(
        (
            Option("model", "qwen3_4b", "tiny", "architecture: qwen3_4b or tiny"),
            Option(
                "passes",
                "32x1024,4x8192,1x32768,8x1024k",
                "2x64,1x128k",
                "samples x tokens; k: nothing recomputed",
            ),
            Option("prompt", 512, 32, "tokens of a judged prompt"),
            Option("prompts", 512, 8, "judged prompts; a quarter of them in float32"),
        )
    ),
    "guardrail": Benchmark(
        (
            Option("requests", 40, 3, "requests one at a time, beside the bare judge"),
            AT_ONCE,
            Option("seconds", 10.0, 2.0, "seconds of load"),
            CLIENTS,
        ),
        "eval/evaluate.py",
        JUDGED,
    ),
    "guardrail_outage": Benchmark(
        (Option("seconds", 240.0, 60.0, "seconds of load"), CLIENTS, AT_ONCE),
        "eval/evaluate.py",
        (*STARTER, "dataset.test.pairs_per_cell=1"),
    ),
    "import_rows": Benchmark((Option("rows", 1_000_000, 4_000, "rows of the CSV"),)),
    "long": Benchmark(
        (
            Option("tokens", 512_000, 3_000, "tokens of the session"),
            Option("full", 16_000, 1_000, "tokens that are read at once as well"),
            Option("model", "random", "random", "random: two small layers; monitor: the monitor itself"),
        ),
        "eval/evaluate.py",
        JUDGED,
    ),
    "pilot_statistics": Benchmark(
        (Option("tasks", 500, 50, "tasks of the pilot"), Option("draws", 10_000, 1_000, "bootstrap draws"))
    ),
    "report_page": Benchmark((Option("sizes", "274,2528,20000", "40", "samples of each page"),)),
    "score": Benchmark(
        (Option("samples", 1_000_000, 2_000, "verdicts"), Option("training_samples", 20_000, 400, "samples")),
    ),
    "score_spread": Benchmark(
        (
            Option("samples", 16, 3, "exchanges that are judged"),
            Option("dtypes", "float32,bfloat16", "float32", "numeric types"),
            Option("kinds", "", "neither", "kinds of CPU; all that this machine can show"),
            Option("server", 0, 0, "1: also through vLLM's server"),
        ),
        "eval/evaluate.py",
        ("tracking=none",),
    ),
    "states": Benchmark((Option("prompts", 200, 3, "prompts"),), "eval/evaluate.py", JUDGED),
    "train": Benchmark(
        (Option("samples", 64, 8, "samples of about 400 tokens"), Option("rounds", 2, 1, "rounds")),
        "train/sft.py",
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Parse, run, print and write; returns the exit code."""
    if arguments[:1] == ["--side"]:
        file, function = arguments[1].split(":")
        side = getattr(importlib.import_module(f"benchmarks.{file}"), function)
        print(json.dumps(side(*json.loads(arguments[2]))))
        return 0
    given = _parser().parse_args(arguments)
    benchmark = BENCHMARKS[given.name]
    values = {}
    for option in benchmark.options:
        value = getattr(given, option.name)
        values[option.name] = (option.tiny if given.tiny else option.default) if value is None else value
    if benchmark.settings_of:
        values["settings"] = [*(benchmark.tiny_settings if given.tiny else ()), *given.settings]
    work = given.work or ROOT / "runs" / "benchmarks" / given.name
    if given.work and work.is_dir() and any(work.iterdir()):
        print(f"error: --work: {work} is not empty; expected a new or an empty folder", file=sys.stderr)
        return 2
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    began = time.monotonic()
    module = importlib.import_module(f"benchmarks.{given.name}")
    from monitorbench.config.base import UserError

    try:
        result = module.main(work.resolve(), **values)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    missed = report(result, work, given.tiny)
    print(f"{time.monotonic() - began:.0f} s\n{work}")
    return 1 if missed else 0


def report(result: "Result", work: Path, is_tiny: bool) -> list[str]:
    """Print rows and ratios, write them to `ratios.json`, and return the names of the missed bars."""
    width = max(map(len, [*result.rows, *result.ratios, ""])) + 2
    for name, row in result.rows.items():
        print(f"{name:<{width}}" + "   ".join(f"{key} {value:,.6g}" for key, value in row.items()))
    missed = [] if is_tiny else [name for name, ratio in result.ratios.items() if ratio.is_missed]
    for name, ratio in result.ratios.items():
        print(f"{name:<{width}}{ratio.value:10.3f}  {ratio.bar}{'  MISSED' if name in missed else ''}")
    content = {
        "ratios": {name: ratio.value for name, ratio in result.ratios.items()},
        "bars": {name: ratio.bar for name, ratio in result.ratios.items() if ratio.bar},
        "measured": result.rows,
        **result.details,
    }
    (work / "ratios.json").write_text(json.dumps(content, indent=2, default=str) + "\n")
    return missed


def _parser() -> argparse.ArgumentParser:
    """Take names, first lines and descriptions from the docstrings, without importing the modules."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__, formatter_class=raw)
    names = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for name, benchmark in BENCHMARKS.items():
        folder = Path(__file__).parent
        file = folder / name / "__init__.py" if (folder / name).is_dir() else folder / f"{name}.py"
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        line = text.partition("\n")[0].replace("%", "%%")
        one = names.add_parser(name, help=line, description=text, formatter_class=raw)
        one.add_argument("--tiny", action="store_true", help="the smallest size, to see that it runs")
        one.add_argument("--work", type=Path, help=f"empty folder for all files (runs/benchmarks/{name})")
        for option in benchmark.options:
            meaning = f"{option.meaning} ({option.default})" if option.default != "" else option.meaning
            spelling = f"--{option.name.replace('_', '-')}"
            one.add_argument(spelling, type=type(option.default), metavar="VALUE", help=meaning)
        if benchmark.settings_of:
            meaning = f"key=value, as for {benchmark.settings_of}"
            one.add_argument("settings", nargs="*", metavar="SETTING", help=meaning)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
