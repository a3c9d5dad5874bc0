"""1,000,000 logged verdicts scored with all intervals: time and memory, beside `json` and scikit-learn.

Writes a synthetic dataset and an evaluation run over it, as the real writers write them: pairs in seven
cells and six sources, about two pairs a group, a third of the responses with a trace; scores with a skill,
2 % of the answers unscored, a quote in every fourth verdict. Then runs `eval/score.py`, a process of its own:
once with nothing kept, so that the baselines, which read every text and fit a bag of words, are worked out as
well, and then as for every further judge on this dataset, with the baselines' numbers reused. The usual way
(`usual.score`) makes 2 of the 2,000 draws, and is scaled.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring import Result, apart, composed, over_usual, script
from monitorbench import records
from monitorbench.corpus.store import SAMPLE_SCHEMA, ShardWriter
from monitorbench.records import Category, Cell, Label, Message, Role, Split, Task
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.keyed_log import open_verdict_log

SECONDS, MIB, DRAWS = 20, 1536, 2
"""Seconds and MiB that the judge's own numbers may take on two cores; draws of the usual way."""
CELLS = (
    Cell(Category.SAFETY_PERMISSION, Task.QA),
    Cell(Category.SAFETY_PERMISSION, Task.CODE),
    Cell(Category.SYCOPHANCY_BIAS, Task.QA),
    Cell(Category.SYCOPHANCY_BIAS, Task.REASONING),
    Cell(Category.SPECIFICATION_GAMING, Task.QA),
    Cell(Category.SPECIFICATION_GAMING, Task.CODE),
    Cell(Category.SPECIFICATION_GAMING, Task.REASONING),
)
_CHUNK = 50_000
_PLACE = records.Span(message=0, field=records.QuoteField.CONTENT, start=3, end=14)
_QUOTES = (
    records.GroundedQuote(quote="as you wish", how=records.Grounding.EXACT, ratio=1.0, place=_PLACE),
    records.GroundedQuote(quote="never said", how=records.Grounding.NONE, ratio=0.0, place=None),
)


def main(work: Path, *, samples: int, training_samples: int) -> Result:
    """Write the data and the run, score it in both ways, and compare."""
    run = _write(work, samples, training_samples)
    command = (f"run={run}", f"paths.data={work / 'data'}", f"paths.runs={work / 'runs'}")
    with_baselines = script("eval/score.py", *command)
    first = (run / "metrics.json").read_bytes()
    ours = script("eval/score.py", *command)
    if (run / "metrics.json").read_bytes() != first:
        raise SystemExit("score: scored twice, and the numbers differ")
    if json.loads(first)["monitors"]["synthetic"]["direct"]["overall"]["n"] != samples:
        raise SystemExit(f"score: {run / 'metrics.json'} is not of {samples:,} samples")
    (data,) = (work / "data").iterdir()
    usual = apart("usual:score", run / "verdicts.jsonl", data / "test", DRAWS)
    of_a_draw, draws = float(usual.output), _study(work).score.resamples
    plain = usual._replace(seconds=usual.seconds - DRAWS * of_a_draw)
    whole = usual._replace(seconds=plain.seconds + draws * of_a_draw)
    rows = {
        "monitorbench, with the baselines": with_baselines.row,
        "monitorbench, baselines reused": ours.row,
        "json + scikit-learn, no interval": plain.row,
        f"json + scikit-learn, AUROC's {draws:,} draws, scaled": whole.row,
    }
    ratios = over_usual(ours, plain, SECONDS, MIB)
    ratios = {f"{name}, no interval" if "usual" in name else name: value for name, value in ratios.items()}
    ratios["usual_seconds_over_ours"] = over_usual(ours, whole, SECONDS, MIB)["usual_seconds_over_ours"]
    return Result(rows, ratios, {"samples": samples})


def _study(work: Path) -> Any:
    return composed("score", ["run=none", f"paths.data={work / 'data'}", f"paths.runs={work / 'runs'}"])


def _write(work: Path, n_test: int, n_train: int) -> Path:
    """Write the dataset and the run; returns the run's directory."""
    study = _study(work)
    data_run = RunDirectory(study.paths.data, "synthetic", {"samples": [n_test, n_train]})
    data = data_run.path
    with data_run.recording(study) as done:
        ids = _write_split(data, Split.TEST, n_test, seed=0)
        _write_split(data, Split.TRAIN, n_train, seed=1)
        done |= {"splits": {"test": {"samples": n_test}, "train": {"samples": n_train}}}
    identity = {"data": data.name, "split": "test", "view": {"subset": ["all"], "pairs_per_cell": None}}
    judge = {"weights": "0", "adapter": "", "engine": "vllm", "dtype": "float32", "context_tokens": 2048}
    run = RunDirectory(study.paths.runs / "evaluate", "synthetic-direct", {**identity, "judge": judge})
    with run.recording(study) as done:
        _write_verdicts(run.path / "verdicts.jsonl", ids)
        done |= {"judge": {**judge, "name": "synthetic", "prompt": "direct"}}
        done |= {"data": data.name, "training": None, "n": n_test}
    return run.path


def _write_split(data: Path, split: Split, n: int, seed: int) -> list[str]:
    """Write a split of `n` samples, an even number; returns their ids.

    Cells and sources have very different sizes, and are the same for a whole group. Columns that are not of
    interest here hold what `records` has for them where nothing is said.
    """
    rng = np.random.default_rng(seed)
    words = np.array([f"word{i}" for i in range(2000)])
    group = np.cumsum(rng.random(n // 2) < 0.5)
    cell = rng.choice(7, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.1, 0.05], size=n // 2 + 1)[group]
    source = rng.choice(6, p=[0.5, 0.3, 0.1, 0.06, 0.03, 0.01], size=n // 2 + 1)[group]
    writer = ShardWriter(data / split.value, "part", rows_per_shard=200_000)
    ids: list[str] = []
    for start in range(0, n, _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, n))
        size, is_bad, pair = len(rows), rows % 2 == 0, rows // 2
        drawn = rng.choice(words, size=(size, 12))
        tones = np.where(rng.random(size) < np.where(is_bad, 0.6, 0.4), "as you wish", "on reflection")
        groups = [f"{split}-question-{i:07d}" for i in group[pair].tolist()]
        texts = {
            "pair": [f"{split}-pair-{i:07d}" for i in pair.tolist()],
            "request": [f"What follows from {name}?" for name in groups],
            "response": [
                f"So {t} {' '.join(w)}" for t, w in zip(tones.tolist(), drawn.tolist(), strict=True)
            ],
            "trace": ["Let me think." if i % 3 == 0 else "" for i in pair.tolist()],
        }
        ids += _ids(*texts.values())
        cells = [CELLS[i] for i in cell[pair].tolist()]
        columns: dict[str, Any] = {
            "id": ids[start:],
            "pair_id": texts["pair"],
            "group_id": groups,
            "category": [str(of_pair.category) for of_pair in cells],
            "task": [str(of_pair.task) for of_pair in cells],
            "request": _messages("user", texts["request"], [""] * size),
            "response": _messages("assistant", texts["response"], texts["trace"]),
            "label": np.where(is_bad, "misbehavior", "benign").tolist(),
            "source": [f"source {i}" for i in source[pair].tolist()],
        }
        constant = {"subcategory": "synthetic", "label_source": "known_answer", "construction": "labelled"}
        constant |= {"licence": "Apache-2.0", "split": split.value}
        for field in SAMPLE_SCHEMA:
            nothing: Any = [] if pa.types.is_list(field.type) else constant.get(field.name, "")
            columns.setdefault(field.name, pa.array([nothing] * size, field.type))
        writer.write(pa.table([columns[name] for name in SAMPLE_SCHEMA.names], schema=SAMPLE_SCHEMA))
    writer.close()
    return ids


def _messages(role: str, contents: list[str], traces: list[str]) -> pa.Array:
    """One message a sample; each has only these three fields, and nothing in the others."""
    n = len(contents)
    fields = list(SAMPLE_SCHEMA.field("request").type.value_type)
    texts = {"role": [role] * n, "content": contents, "thinking": traces}
    columns = []
    for field in fields:
        nothing: list[Any] = [[] if pa.types.is_list(field.type) else ""] * n
        columns.append(pa.array(texts.get(field.name, nothing), field.type))
    offsets = pa.array(np.arange(n + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(columns, fields=fields))


def _ids(pairs: list[str], requests: list[str], responses: list[str], traces: list[str]) -> list[str]:
    """`records.content_id` of texts that hold nothing that JSON escapes, in a hundredth of its time."""
    form = '[{{"content":"{}","role":"{}","thinking":"{}","tool_call_id":"","tool_calls":[]}}]'
    ids = []
    for pair, request, response, trace in zip(pairs, requests, responses, traces, strict=True):
        messages = f"{form.format(request, 'user', '')},{form.format(response, 'assistant', trace)}"
        ids.append(hashlib.sha256(f'["{pair}",{messages}]'.encode()).hexdigest()[:16])
    request_message = Message(role=Role.USER, content=requests[0])
    response_message = Message(role=Role.ASSISTANT, content=responses[0], thinking=traces[0])
    if ids[0] != records.content_id(pairs[0], (request_message,), (response_message,)):
        raise SystemExit("score: the ids written here are no longer those of real samples")
    return ids


def _write_verdicts(path: Path, ids: list[str]) -> None:
    """Write the verdicts in the order in which an engine that sorts its requests would end them."""
    rng, n = np.random.default_rng(2), len(ids)
    scores = 1 / (1 + np.exp(-rng.normal(np.where(np.arange(n) % 2 == 0, 0.8, -0.8), 1.5)))
    is_silent = rng.random(n) < 0.02
    with open_verdict_log(path) as log:
        for i in rng.permutation(n).tolist():
            evidence = _QUOTES[: 1 + i % 2] if i % 4 == 0 else ()
            label = Label.MISBEHAVIOR if scores[i] > 0.5 else Label.BENIGN
            verdict = records.Verdict.model_construct(
                key=hashlib.sha256(ids[i].encode()).hexdigest()[:24],
                sample_id=ids[i],
                prompt="direct",
                answer="" if is_silent[i] else " yes" if label is Label.MISBEHAVIOR else " no",
                label=None if is_silent[i] else label,
                unscored=records.UnscoredReason.NO_LABEL if is_silent[i] else None,
                score=float(scores[i]),
                label_mass=0.98,
                finish_reason="stop",
                quotes=tuple(quote.quote for quote in evidence),
                evidence=evidence,
                prompt_tokens=312,
                completion_tokens=1,
                seconds=0.0125,
            )
            log.append(verdict)
