"""The 153,581-sample corpus: time and memory, beside the same job with `datasets.map` and `datasketch`.

The mirror's real samples (MONITORBENCH_SOURCES) are topped up by the synthetic source. Each measurement is a
process of its own: constructing the candidates that are not there yet, and mixing them (overlap with the
benchmark and within the corpus, quotas, shards), at one and at two times the size; then the usual way from
the same candidates. Constructing runs thousands of programs in the sandbox and is done once; the ratios
compare the mixing.
"""

import json
import os
import shutil
from pathlib import Path

from benchmarks.measuring import ROOT, Measured, Ratio, Result, apart, composed, script
from monitorbench.config.datasets import PaperDataset
from monitorbench.corpus.build import directory_of
from monitorbench.corpus.paper.candidates import located
from monitorbench.corpus.paper.units import paper_inputs, units


def main(work: Path, *, samples: int, sources: str) -> Result:
    """Build the corpus at two sizes and in both ways, and compare."""
    if not os.environ.get("MONITORBENCH_SOURCES"):
        raise SystemExit("corpus: needs the raw upstream files; set MONITORBENCH_SOURCES to their folder")
    runs: dict[str, Measured] = {}
    for times in (1, 2):
        settings, name = _settings(times, samples, sources), f"mix, {times * samples:,} samples"
        # What an earlier run left would be reused, and nothing measured.
        shutil.rmtree(ROOT / directory_of(composed("build", settings)).path, ignore_errors=True)
        runs[f"monitorbench: construct what is missing, {name}"] = built = _build(settings, times * samples)
        shutil.rmtree(ROOT / built.output)
        runs[f"monitorbench: {name}"] = _build(settings, times * samples)
        if times == 1:
            runs[f"datasets.map + datasketch: {name}"] = _usual(settings, ROOT / built.output, work)
        shutil.rmtree(ROOT / built.output)
    _, ours, usual, _, double = runs.values()
    ratios = {
        "usual_seconds_over_ours": Ratio(usual.seconds / ours.seconds),
        "usual_memory_over_ours": Ratio(usual.peak_mib / ours.peak_mib),
        "twice_the_samples_seconds": Ratio(double.seconds / ours.seconds),
        "twice_the_samples_memory": Ratio(double.peak_mib / ours.peak_mib),
    }
    return Result({name: run.row for name, run in runs.items()}, ratios, {"samples": samples})


def _dataset(settings: list[str]) -> PaperDataset:
    dataset = composed("build", settings).dataset
    assert isinstance(dataset, PaperDataset)
    return dataset


def _settings(times: int, samples: int, sources: str) -> list[str]:
    """The local corpus, `times` as large, with as many synthetic samples as it asks for."""
    dataset = _dataset(["dataset=paper_local"])
    quotas, wanted = dataset.corpus_quotas, sources.split(",") if sources else list(dataset.ingredients)
    if unknown := sorted(set(wanted) - set(dataset.ingredients)):
        raise SystemExit(f"--sources: no source {', '.join(unknown)} in dataset=paper_local")
    left_out = [f"dataset.sources.{name}=null" for name in dataset.ingredients if name not in wanted]
    scale, total = times * samples / sum(quotas.values()), times * samples
    counts = {cell: round(scale * quota) for cell, quota in quotas.items()}
    counts[next(iter(counts))] += total - sum(counts.values())
    of_cells = [f"dataset.corpus.{cell.replace('/', '.')}={count}" for cell, count in counts.items()]
    return ["dataset=paper_local", *left_out, f"dataset.synthetic_samples={total}", *of_cells]


def _build(settings: list[str], samples: int) -> Measured:
    """Build it; the job that is measured has to be the whole one."""
    done = script("data_build/build.py", *settings)
    results = json.loads((ROOT / done.output / "manifest.json").read_text())["results"]
    if results["splits"]["train"]["samples"] != samples:
        raise SystemExit(f"corpus: {done.output} does not hold {samples:,} samples")
    return done


def _usual(settings: list[str], benchmark: Path, work: Path) -> Measured:
    """The usual way, from the candidates of the single size."""
    inputs = paper_inputs(composed("build", settings))
    folders = [ROOT / candidates.folder for candidates in located(inputs, units(inputs))]
    return apart("usual:corpus", folders, benchmark, work, _dataset(settings).corpus_quotas)
