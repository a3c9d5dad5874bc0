"""Folders of runs with manifests as the stages write them, made without running any."""

import json
from pathlib import Path
from typing import Any

from sealed import seal

from monitorbench.runs.directory import SCHEMA_VERSION
from monitorbench.runs.files import content_hash

DATA = "starter-ce2fc020bf9e"
STARTED = "2026-11-23T10:00:{:02}+00:00"


def evaluated(
    runs: Path,
    name: str = "small-direct",
    split: str = "test",
    *,
    second: int = 0,
    rates: tuple[float, float] | None = None,
    config: dict[str, Any] | None = None,
    status: str = "done",
    salt: int = 0,
) -> Path:
    """An evaluation run of `<monitor>-<prompt>`; scored where `rates` (MR, FAR) are given."""
    monitor, _, prompt = name.partition("-")
    judge = {"weights": monitor, "adapter": "", "prompt": {"name": prompt}}
    identity = {"schema_version": SCHEMA_VERSION, "data": DATA, "split": split, "judge": judge, "salt": salt}
    path = runs / "evaluate" / f"{name}-starter-{split}-{content_hash(identity)}"
    path.mkdir(parents=True)
    (path / "verdicts.jsonl").write_text("")
    (path / "config.json").write_text(json.dumps(config or {}))
    if rates is not None:
        header = "monitor,prompt,cell,miss_rate,false_alarm_rate"
        rows = ["bag,none,overall,0.9,0.9", f"{monitor},{prompt},overall,{rates[0]},{rates[1]}"]
        (path / "table.csv").write_text("\n".join([header, *rows]) + "\n")
        (path / "metrics.json").write_text("{}")
    results = {"judge": {**judge, "name": monitor, "prompt": prompt}, "data": DATA, "n": 28}
    sealed_run(path, identity, results, second, status)
    return path


def sealed_run(
    path: Path, identity: dict[str, Any], results: dict[str, Any], second: int = 0, status: str = "done"
) -> Path:
    """Write a manifest, and the checksums of what lies in the folder."""
    path.mkdir(parents=True, exist_ok=True)
    if not (path / "config.json").exists():
        (path / "config.json").write_text("{}")
    started = STARTED.format(second)
    seal(path, {"status": status, "identity": identity, "started": started, "results": results})
    return path


def trained(runs: Path, second: int = 0, weights: str = "w", digest: str = "0123456789ab") -> Path:
    """A training run of the monitor `small` on everything."""
    identity = {"data": DATA, "seed": 0, "weights": weights}
    path = runs / "train" / f"small-all-starter-seed0-{digest}"
    return sealed_run(path, identity, {"name": "all", "n_samples": 408}, second)


def calibrated(
    runs: Path, judged: Path, second: int = 0, digest: str = "abcdef012345", name: str = "small"
) -> Path:
    """A calibration of an evaluation run."""
    judge = json.loads((judged / "manifest.json").read_text())["identity"]["judge"]
    monitor = f"{name}/direct/{content_hash(judge)}"
    point = {"thresholds": [{"monitor": monitor, "data": DATA, "n": 40, "threshold": 0.5, "category": ""}]}
    results = {"operating_point": point, "judged": str(judged)}
    path = runs / "calibrate" / f"{name}-direct-starter-{digest}"
    return sealed_run(path, {"run": judged.name}, results, second)


def transferred(runs: Path, *made_of: Path, second: int = 0) -> Path:
    """A transfer run of evaluation runs."""
    path = runs / "transfer" / "starter-fedcba987654"
    path.mkdir(parents=True)
    (path / "metrics.json").write_text("{}")
    return sealed_run(path, {}, {"runs": [str(run) for run in made_of]}, second)
