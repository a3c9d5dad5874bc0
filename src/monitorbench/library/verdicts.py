"""What did each monitor say of each sample? Runs and verdict files as one table (`read_runs`)."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.imports import Import
from monitorbench.corpus.store import read_split
from monitorbench.judging.recorded import read_recorded, verdicts_of
from monitorbench.library.inputs import ResultRow, Shown
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import MANIFEST, read_finished, read_manifest
from monitorbench.runs.keyed_log import read_run
from monitorbench.sources import fetch
from monitorbench.sources.files import team_jsonl

Frame = Literal["pandas", "polars", "pyarrow"]

_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("monitor", pa.string()),
        ("prompt", pa.string()),
        ("split", pa.string()),
        ("sample_id", pa.string()),
        ("own_id", pa.string()),
        ("pair_id", pa.string()),
        ("group_id", pa.string()),
        ("category", pa.string()),
        ("task", pa.string()),
        ("cell", pa.string()),
        ("label", pa.string()),
        ("answer", pa.string()),
        ("flagged", pa.bool_()),
        ("unscored", pa.string()),
        ("score", pa.float64()),
        ("seconds", pa.float64()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost", pa.float64()),
    ]
)
"""`label` is what the sample is, `answer` what the monitor said; `flagged` is null where it is unscored."""
_TAKEN = ("seconds", "prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Verdicts(Shown):
    """One row for each run and sample, in the order of the runs and then of the sample ids."""

    table: pa.Table
    """With `_SCHEMA`."""

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, name: str) -> Any:
        """A column, as a pyarrow array; `ValueError` for a name that is none."""
        if name not in self.table.column_names:
            raise ValueError(f"{name!r} is no column; expected {', '.join(self.table.column_names)}")
        return self.table[name]

    def where(self, **values: str) -> "Verdicts":
        """The rows with these values: `verdicts.where(monitor="smollm2_135m", split="test")`."""
        selected = self
        for name, value in values.items():
            selected = replace(selected, table=selected.table.filter(pc.equal(selected[name], value)))
        return selected

    def to(self, kind: Frame) -> Any:
        """The table as a data frame of pandas, polars or pyarrow; `ValueError` for another name."""
        if kind == "pyarrow":
            return self.table
        if kind == "pandas":
            return self.table.to_pandas()
        if kind == "polars":
            import polars

            return polars.from_arrow(self.table)
        raise ValueError(f"{kind!r}: expected pandas, polars or pyarrow")

    def _title(self) -> str:
        return f"{len(self)} verdicts"

    def _rows(self) -> Sequence[ResultRow]:
        counts = self.table.group_by(["run", "monitor", "split"], use_threads=False).aggregate(
            [([], "count_all"), ("flagged", "count")]
        )
        return [
            ResultRow(
                count["run"],
                f"{count['monitor']}, {count['split']}",
                f"{count['flagged_count']} of {count['count_all']} scored",
            )
            for count in counts.to_pylist()
        ]


def read_runs(
    runs: str | Path | Iterable[str | Path], *, data: str | Path | None = None, monitor: str | None = None
) -> Verdicts:
    """The verdicts of evaluation runs, joined with their samples' labels and cells.

        read_runs("runs/evaluate")
        read_runs(["verdicts-a.jsonl", "verdicts-b.jsonl"], data="dataset.jsonl")

    Args:
        runs: a run's folder, a folder of runs, a verdict file (`verdicts-NAME.jsonl`), or several of these.
        data: for runs the folder of built datasets; without it the one that the run was made with. Of
            verdict files the dataset that they are of, in the format of `dataset=jsonl`.
        monitor: the monitor's name in place of the recorded one.

    Raises:
        ValueError: where nothing is found, a run did not finish, or a verdict has no sample.

    """
    paths = [Path(runs)] if isinstance(runs, str | Path) else [Path(run) for run in runs]
    try:
        rows = [row for path in paths for row in _rows_of(path, data, monitor)]
    except UserError as error:
        raise ValueError(str(error)) from None
    if not rows:
        raise ValueError(f"{', '.join(map(str, paths))}: no finished evaluation run there")
    return Verdicts(pa.Table.from_pylist(rows, schema=_SCHEMA))


def _rows_of(path: Path, data: str | Path | None, monitor: str | None) -> Iterator[dict[str, Any]]:
    if path.is_file():
        if data is None:
            raise ValueError(f"{path}: a verdict file; name the dataset it is of, as in data='dataset.jsonl'")
        name = path.name.removesuffix(".jsonl").removeprefix("verdicts-")
        samples = _samples(Path(data))
        yield from _joined(str(path), monitor or name, "", samples, _recorded(path, samples), None)
        return
    if not path.is_dir():
        raise ValueError(f"{path}: not there; expected a run's folder, a folder of runs or a verdict file")
    if (path / MANIFEST).is_file():
        yield from _of_run(path, data, monitor)
        return
    for manifest in sorted(path.rglob(MANIFEST)):
        facts = read_manifest(manifest.parent)
        if facts["status"] == "done" and "judge" in facts.get("results", {}):
            yield from _of_run(manifest.parent, data, monitor)


def _of_run(directory: Path, data: str | Path | None, monitor: str | None) -> Iterator[dict[str, Any]]:
    manifest = read_finished(directory)
    results, identity = manifest["results"], manifest["identity"]
    if "judge" not in results:
        raise UserError(f"{directory}: no evaluation run; expected one of `monitorbench evaluate`")
    view = SplitView.model_validate_json(json.dumps(identity["view"]))
    split = Split(identity.get("split", Split.TEST))
    if data is None:
        data = strict_json.loads((directory / "config.json").read_bytes())["paths"]["data"]
    folder = Path(data)
    samples = {record.id: record for record in read_split(folder / results["data"], split, view)}
    verdicts = {key: record.model_dump(mode="json") for key, record in read_run(directory).items()}
    name = monitor or results["judge"]["name"]
    yield from _joined(directory.name, name, results["judge"]["prompt"], samples, verdicts, split)


def _samples(data: Path) -> dict[str, Sample]:
    files = fetch.local("data", data, team_jsonl.SUFFIXES, "error")
    return {sample.id: sample for sample in team_jsonl.load(files)}


def _recorded(path: Path, samples: Mapping[str, Sample]) -> dict[str, dict[str, Any]]:
    """By sample id what a verdict file (docs/data-formats.md) says."""
    known = {*samples, *(sample.own_id for sample in samples.values())}
    if foreign := [name for name in read_recorded(path) if name not in known]:
        raise UserError(
            f"{path}: sample {foreign[0]} is not in the dataset ({len(foreign)} such); is it another's?"
        )
    verdicts = verdicts_of(path, Import(), [*samples.values()])
    return {name: verdict._asdict() for name, verdict in zip(samples, verdicts, strict=True)}


def _joined(
    run: str,
    monitor: str,
    prompt: str,
    samples: Mapping[str, Sample],
    verdicts: Mapping[str, Mapping[str, Any]],
    split: Split | None,
) -> Iterator[dict[str, Any]]:
    for sample_id in sorted(samples):
        if sample_id not in verdicts:
            raise UserError(
                f"{run}: sample {sample_id} has no verdict; judge it, or leave it out of the dataset"
            )
        sample, verdict = samples[sample_id], verdicts[sample_id]
        answer = verdict["label"]
        yield {
            "run": run,
            "monitor": monitor,
            "prompt": prompt,
            "split": str(split or sample.split or ""),
            "sample_id": sample_id,
            "own_id": sample.own_id,
            "pair_id": sample.pair_id,
            "group_id": sample.group_id,
            "category": str(sample.category),
            "task": str(sample.task),
            "cell": f"{sample.category}/{sample.task}",
            "label": str(sample.label),
            "answer": answer,
            "flagged": None if answer is None else answer == "misbehavior",
            **{name: verdict.get(name) for name in ("unscored", "score", *_TAKEN)},
        }
