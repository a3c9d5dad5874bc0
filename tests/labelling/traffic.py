"""Logs of monitors over one traffic, and people who know the answers."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from monitorbench.annotation.files import read_returned
from monitorbench.config.study import Study
from monitorbench.labelling.stage import label

N = 1_500
Compose = Callable[..., Study]


class Traffic:
    """Logs of two monitors over the same traffic, and people who know the answers."""

    def __init__(self, folder: Path, compose: Compose) -> None:
        self.folder, self.compose = folder, compose
        rng = np.random.default_rng(7)
        self.is_bad = rng.random(N) < 0.06
        self.scores = {}
        for name, shift in (("strong", 4.0), ("weak", 1.0)):
            score = 1 / (1 + np.exp(-(rng.normal(size=N) + shift * self.is_bad - 2)))
            self.scores[name] = score
            lines = [
                {"sample_id": f"s{i}", "score": value, "threshold": 0.5, "request": "q", "response": f"r{i}"}
                for i, value in enumerate(score.tolist())
            ]
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def study(self, *settings: str, stage: str = "label") -> Study:
        study = self.compose(stage, *settings)
        return study.model_copy(
            update={"paths": study.paths.model_copy(update={"runs": self.folder / "runs"})}
        )

    def begin(self, *names: str, budget: int = 150, **more: str) -> Path:
        files = ",".join(str(self.folder / f"{name}.jsonl") for name in names)
        given = [f"label.{key}={value}" for key, value in more.items()]
        return label(self.study(f"label.scores=[{files}]", f"label.budget={budget}", *given))

    def answers(self, run: Path, *, doubted: int = 0, wrong: frozenset[int] = frozenset()) -> str:
        """Both readers answer; the second is unsure about the first so many items, the first errs in some."""

        def told(reader: str, response: str) -> str:
            nonlocal doubted
            sample = int(response[1:])
            doubted -= reader == "second"
            if reader == "second" and doubted >= 0:
                return "unsure"
            return "misbehavior" if self.is_bad[sample] != (sample in wrong) else "benign"

        files = return_batches(run, self.folder, told)
        return f"annotation.returned=[{','.join(map(str, files))}]"

    def third_answers(self, run: Path) -> str:
        """The third reader settles what a run's readers left open, and is right."""
        file = self.folder / "third.csv"
        with file.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(("item", "batch", "label"))
            for row in read_returned(run / "adjudication.csv"):
                is_bad = self.is_bad[int((row.response or "")[1:])]
                writer.writerow((row.item, f"batch-{row.reader}", "misbehavior" if is_bad else "benign"))
        return f"annotation.adjudicated={file}"

    def read(self, run: Path, *more: str, **how: Any) -> Path:
        return label(self.study(f"run={run}", self.answers(run, **how), *more))

    def estimates(self, run: Path, against: str = "") -> dict[tuple[str, str], dict[str, str]]:
        with (run / "table.csv").open(newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["against"] == against]
            return {(row["monitor"], row["metric"]): row for row in rows}


def return_batches(
    run: Path, folder: Path, told: Callable[[str, str], str], readers: Sequence[str] = ("first", "second")
) -> list[Path]:
    """Both readers' batches as they return them, in the items' order; `told` has a reader and a response."""
    files = []
    for reader in readers:
        files.append(folder / f"{reader}.csv")
        with files[-1].open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(("item", "batch", "label", "note", "request", "response"))
            rows = read_returned(run / "batches" / reader / "batch.csv")
            for row in sorted(rows, key=lambda row: row.item):
                label = told(reader, row.response or "")
                writer.writerow((row.item, f"batch-{row.reader}", label, "", row.request, row.response))
    return files


def asked(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "asked.jsonl").read_text().splitlines()]
