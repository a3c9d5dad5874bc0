"""The 153,581-sample corpus: time and memory, beside the same job with `datasets.map` and `datasketch`.

    MONITORBENCH_SOURCES=DIR python benchmarks/corpus.py

The mirror's real samples are topped up by the synthetic source. Each measurement is a process of its own:
constructing the candidates that are not there yet, and mixing them (overlap with the benchmark and within
the corpus, quotas, shards), at one and at two times the size; then the usual way from the same candidates.
Constructing runs thousands of programs in the sandbox and is done once; the ratios compare the mixing.
Prints a table and writes `runs/benchmarks/corpus/ratios.json`.
"""

import json
import shutil
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir
from measure import ROOT, Measured, measured

from monitorbench.config.datasets import PaperDataset
from monitorbench.config.load import load
from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of
from monitorbench.corpus.paper.candidates import located
from monitorbench.corpus.paper.units import paper_inputs, units

WORK = ROOT / "runs" / "benchmarks" / "corpus"
SAMPLES = 153_581


def main() -> None:
    """Measure and print."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    rows: dict[str, Measured] = {}
    for times in (1, 2):
        size = f"{times * SAMPLES:,} samples"
        # What an earlier run left would be reused, and nothing measured.
        shutil.rmtree(ROOT / directory_of(study(overrides(times))).path, ignore_errors=True)
        rows[f"monitorbench: construct what is missing, mix, {size}"] = built = build(times)
        shutil.rmtree(ROOT / built.output)
        rows[f"monitorbench: mix, {size}"] = build(times)
        if times == 1:
            rows[f"datasets.map + datasketch: mix, {size}"] = usual(Path(built.output))
        shutil.rmtree(ROOT / built.output)
    for name, row in rows.items():
        print(f"{name:<60} {row.seconds:7.1f} s {row.peak_mib:6.0f} MiB")
    ours, theirs, double = (
        rows[f"{name}: mix, {n:,} samples"]
        for name, n in (
            ("monitorbench", SAMPLES),
            ("datasets.map + datasketch", SAMPLES),
            ("monitorbench", 2 * SAMPLES),
        )
    )
    ratios = {
        "usual_seconds_over_ours": theirs.seconds / ours.seconds,
        "usual_memory_over_ours": theirs.peak_mib / ours.peak_mib,
        "twice_the_samples_seconds": double.seconds / ours.seconds,
        "twice_the_samples_memory": double.peak_mib / ours.peak_mib,
    }
    for name, ratio in ratios.items():
        print(f"{name:<60} {ratio:7.2f}")
    measurements = {name: {"seconds": row.seconds, "peak_mib": row.peak_mib} for name, row in rows.items()}
    (WORK / "ratios.json").write_text(
        json.dumps({"ratios": ratios, "measured": measurements}, indent=2) + "\n"
    )


def overrides(times: int) -> list[str]:
    """The local corpus, `times` as large, with as many synthetic samples as it asks for."""
    quotas = [
        f"dataset.corpus.{cell.replace('/', '.')}={times * quota}"
        for cell, quota in dataset().corpus_quotas.items()
    ]
    return ["dataset=paper_local", f"dataset.synthetic_samples={times * SAMPLES}", *quotas]


def dataset() -> PaperDataset:
    """The dataset that is built."""
    made = study(["dataset=paper_local"]).dataset
    assert isinstance(made, PaperDataset)
    return made


def study(changes: list[str]) -> Study:
    """The whole configuration."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return load(compose("build", changes))


def build(times: int) -> Measured:
    """Build it; the job that is measured has to be the whole one."""
    done = measured([sys.executable, str(ROOT / "data_build" / "build.py"), *overrides(times)])
    results = json.loads((ROOT / done.output / "manifest.json").read_text())["results"]
    if results["splits"]["train"]["samples"] != times * SAMPLES:
        raise SystemExit(f"benchmarks/corpus.py: {done.output} does not hold {times * SAMPLES:,} samples")
    return done


def usual(benchmark: Path) -> Measured:
    """The usual way, from the candidates of the single size."""
    whole = study(overrides(1))
    assert isinstance(whole.dataset, PaperDataset)
    inputs = paper_inputs(whole)
    folders = [str(ROOT / found.folder) for found in located(inputs, units(inputs))]
    job = {
        "candidates": folders,
        "benchmark": str(ROOT / benchmark),
        "out": str(WORK / "usual"),
        "quotas": whole.dataset.corpus_quotas,
    }
    (WORK / "usual.json").write_text(json.dumps(job))
    return measured([sys.executable, str(ROOT / "benchmarks" / "corpus_usual.py"), str(WORK / "usual.json")])


if __name__ == "__main__":
    main()
