"""1,000,000 logged verdicts scored with all intervals: time and memory, beside `json` and scikit-learn.

    python benchmarks/score.py [SAMPLES]

Writes a synthetic dataset and an evaluation run over it (`score_data.py`), then runs `eval/score.py` on it
as a process of its own: once with nothing kept, so that the baselines, which read every text and fit a bag
of words, are worked out as well, and then as for every further judge on this dataset, with the baselines'
numbers reused. The usual way (`score_usual.py`) makes 2 of the 2,000 draws, and is scaled.
Prints a table and writes `runs/benchmarks/score/ratios.json`.
"""

import json
import shutil
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir
from measure import ROOT, Measured, measured
from score_data import write

from monitorbench.config.load import load

WORK = ROOT / "runs" / "benchmarks" / "score"
SAMPLES = 1_000_000
TRAINING_SAMPLES = 20_000
SECONDS, MIB = 20, 1536
"""What the judge's own numbers may take on two cores."""
DRAWS = 2


def main(samples: int) -> None:
    """Measure and print."""
    shutil.rmtree(WORK, ignore_errors=True)
    paths = [f"paths.data={WORK / 'data'}", f"paths.runs={WORK / 'runs'}"]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        study = load(compose("score", ["run=none", *paths]))
    run = write(study, samples, TRAINING_SAMPLES)
    command = [sys.executable, str(ROOT / "eval" / "score.py"), f"run={run}", *paths]
    rows = {"monitorbench, with the baselines": measured(command)}
    results = run / "metrics.json"
    first = results.read_bytes()
    rows["monitorbench, baselines reused"] = ours = measured(command)
    if results.read_bytes() != first:
        raise SystemExit("benchmarks/score.py: scored twice, and the numbers differ")
    if json.loads(first)["monitors"]["synthetic"]["direct"]["overall"]["n"] != samples:
        raise SystemExit(f"benchmarks/score.py: {results} is not of {samples:,} samples")
    usual, of_a_draw = run_usual(run)
    draws = study.transfer.resamples
    rows["json + scikit-learn, no interval"] = usual._replace(seconds=usual.seconds - DRAWS * of_a_draw)
    rows[f"json + scikit-learn, AUROC's {draws:,} draws, scaled"] = usual._replace(
        seconds=usual.seconds - DRAWS * of_a_draw + draws * of_a_draw
    )
    for name, row in rows.items():
        print(f"{name:<60} {row.seconds:10.1f} s {row.peak_mib:7.0f} MiB")
    ratios = {
        "usual_without_intervals_seconds_over_ours": (usual.seconds - DRAWS * of_a_draw) / ours.seconds,
        "usual_seconds_over_ours": (usual.seconds + (draws - DRAWS) * of_a_draw) / ours.seconds,
        "usual_memory_over_ours": usual.peak_mib / ours.peak_mib,
        "seconds_over_the_limit": ours.seconds / SECONDS,
        "memory_over_the_limit": ours.peak_mib / MIB,
    }
    for name, ratio in ratios.items():
        print(f"{name:<60} {ratio:10.2f}")
    measurements = {name: {"seconds": row.seconds, "peak_mib": row.peak_mib} for name, row in rows.items()}
    (WORK / "ratios.json").write_text(
        json.dumps({"samples": samples, "ratios": ratios, "measured": measurements}, indent=2) + "\n"
    )


def run_usual(run: Path) -> tuple[Measured, float]:
    """The usual way on the same files, and the seconds that one draw of all its parts takes."""
    script = ROOT / "benchmarks" / "score_usual.py"
    (data,) = (WORK / "data").iterdir()
    files = [str(run / "verdicts.jsonl"), str(data / "test")]
    done = measured([sys.executable, str(script), *files, str(DRAWS)])
    return done, json.loads(done.output)["seconds_of_a_draw"]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES)
