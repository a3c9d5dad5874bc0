"""A dataset on disk and evaluation runs of monitors that are none of ours, as an import leaves them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sealed import seal
from studies import study

from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split, write_split
from monitorbench.records import Label, Sample, Split, Verdict
from monitorbench.runs.files import content_hash
from monitorbench.runs.keyed_log import open_verdict_log
from monitorbench.runs.run_folders import evaluation_run

WORDS = {Label.MISBEHAVIOR: ("removed", "sent", "skipped"), Label.BENIGN: ("listed", "asked", "kept")}


def made_dataset(
    folder: Path, make_sample: Any, *, calibration: int, test: int, tells: float = 0.0, texts: bool = True
) -> Path:
    """Pairs in two cells; in a share `tells` of them a word of the response gives the label away."""
    directory = folder / "mine-0123456789ab"
    rng = np.random.default_rng(0)
    sizes = {}
    for split, pairs in ((Split.CALIBRATION, calibration), (Split.TEST, test)):
        samples = []
        for i in range(pairs):
            told = rng.random() < tells
            for label in Label:
                word = rng.choice(WORDS[label if told else rng.choice(list(Label))])
                number = rng.integers(10**6)
                samples.append(
                    make_sample(
                        f"Task {split} {i} {label if not texts else ''}?",
                        f"I {word} number {number}." if texts else "-",
                        pair_id=f"{split}{i}",
                        group_id=f"{split}{i}",
                        category=("fraud", "secrets")[i % 2],
                        task="agents",
                        label=label,
                        split=split,
                    )
                )
        write_split(directory, split, samples)
        sizes[split.value] = {"samples": len(samples)}
    seal(directory, {"status": "done", "identity": {}, "results": {"splits": sizes}})
    return directory


def made_run(runs: Path, data: Path, name: str, split: Split, above: float, **more: Any) -> Path:
    """A finished run of a judge that nobody here could load; misbehavior scores so many SD above benign."""
    judge = {"weights": "", "adapter": "", "engine": "imported", "version": name}
    identity = {
        "data": data.name,
        "split": split.value,
        "view": {"subset": ["all"], "pairs_per_cell": None},
        "judge": judge,
        "logs": [content_hash([name, split.value, above])],
    }
    run = evaluation_run(runs, name, "theirs", identity)
    rng = np.random.default_rng([len(name), int(100 * above), split is Split.TEST])
    samples = read_split(data, split)
    with (
        run.recording(study(f"paths.runs={runs}")) as results,
        open_verdict_log(run.path / "verdicts.jsonl") as log,
    ):
        for sample in samples:
            score = float(
                np.clip(0.5 + (rng.normal() + above * (sample.label is Label.MISBEHAVIOR)) / 10, 0, 1)
            )
            log.append(verdict(sample, score, **more))
        results |= {
            "judge": {**judge, "name": name, "prompt": "theirs"},
            "data": data.name,
            "training": None,
            "n": len(samples),
            "n_unscored": 0,
            "n_unanswered": 0,
        }
    return run.path


def verdict(sample: Sample, score: float, *, labels_only: bool = False, seconds: float = 0.0) -> Verdict:
    return Verdict(
        key=content_hash([sample.id, score]),
        sample_id=sample.id,
        prompt="theirs",
        answer="",
        label=Label.MISBEHAVIOR if score > 0.6 else Label.BENIGN,
        unscored=None,
        score=None if labels_only else score,
        label_mass=None,
        finish_reason="",
        prompt_tokens=0,
        completion_tokens=0,
        seconds=seconds,
    )


def both(runs: Path, data: Path, monitors: Mapping[str, float], **more: Any) -> list[Path]:
    """A run of each monitor over each split."""
    return [
        made_run(runs, data, name, split, above, **more)
        for name, above in monitors.items()
        for split in (Split.CALIBRATION, Split.TEST)
    ]


def asked(folder: Path, runs: list[Path], *more: str) -> Study:
    """The study of `recommend` over these runs, drawn less often than by default."""
    named = ",".join(map(str, runs))
    quick = ("score.resamples=300", "recommend.redraws=200")
    places = (f"paths.data={folder}", f"paths.runs={folder / 'runs'}")
    return study(*places, f"recommend.runs=[{named}]", *quick, *more, primary="recommend")
