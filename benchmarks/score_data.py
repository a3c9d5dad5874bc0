"""What `score.py` scores: a dataset and an evaluation run over it, synthetic, as the real writers write them.

Pairs in seven cells and six sources, about two pairs a group, a third of the responses with a trace; scores
with a skill that differs by cell, 2 % of the answers unscored, a quote in every fourth verdict.
"""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from monitorbench.config.study import Study
from monitorbench.corpus.store import ShardWriter
from monitorbench.records import (
    SAMPLE_SCHEMA,
    Category,
    Cell,
    GroundedQuote,
    Grounding,
    Label,
    Message,
    QuoteField,
    QuotePlace,
    Role,
    Split,
    Task,
    UnscoredReason,
    Verdict,
    content_id,
)
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import write_json

CELLS = (
    Cell(Category.SAFETY_PERMISSION, Task.QA),
    Cell(Category.SAFETY_PERMISSION, Task.CODE),
    Cell(Category.SYCOPHANCY_BIAS, Task.QA),
    Cell(Category.SYCOPHANCY_BIAS, Task.REASONING),
    Cell(Category.SPECIFICATION_GAMING, Task.QA),
    Cell(Category.SPECIFICATION_GAMING, Task.CODE),
    Cell(Category.SPECIFICATION_GAMING, Task.REASONING),
)
_SOURCES = 6
_CHUNK = 50_000
_QUOTE = GroundedQuote(
    quote="as you wish",
    how=Grounding.EXACT,
    ratio=1.0,
    place=QuotePlace(message=0, field=QuoteField.CONTENT, start=3, end=14),
)
_LOST = GroundedQuote(quote="never said", how=Grounding.NONE, ratio=0.0, place=None)


def write(study: Study, n_test: int, n_train: int) -> Path:
    """Write the dataset and the run; returns the run's directory."""
    data = study.paths.data / "synthetic-000000000000"
    ids = _split(data, Split.TEST, n_test, seed=0)
    _split(data, Split.TRAIN, n_train, seed=1)
    results = {
        "splits": {"test": {"samples": n_test}, "train": {"samples": n_train}},
    }
    write_json(data / "manifest.json", {"status": "done", "results": results})
    identity = {"data": data.name, "split": "test", "view": {"subset": ["all"], "pairs_per_cell": None}}
    judge = {"weights": "0", "adapter": "", "engine": "vllm", "dtype": "float32", "context_tokens": 2048}
    run = RunDirectory(study.paths.runs / "evaluate", "synthetic-direct", {**identity, "judge": judge})
    with run.recording(study) as done:
        _log(run.path / "verdicts.jsonl", ids, seed=2)
        done |= {
            "judge": {**judge, "name": "synthetic", "prompt": "direct"},
            "data": data.name,
            "training": None,
            "n": n_test,
        }
    return run.path


def _split(data: Path, split: Split, n: int, seed: int) -> list[str]:
    """Write a split of `n` samples, an even number; returns their ids."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{i}" for i in range(2000)])
    pairs = n // 2
    group = np.cumsum(rng.random(pairs) < 0.5)
    group_of_pair = [f"{split}-question-{i:07d}" for i in group.tolist()]
    # Cells and sources of very different sizes, one for a whole group.
    cell = rng.choice(7, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.1, 0.05], size=pairs + 1)[group]
    source = rng.choice(_SOURCES, p=[0.5, 0.3, 0.1, 0.06, 0.03, 0.01], size=pairs + 1)[group]
    writer = ShardWriter(data / split.value, "part", rows_per_shard=200_000)
    ids: list[str] = []
    for start in range(0, n, _CHUNK):
        size = min(_CHUNK, n - start)
        rows = np.arange(start, start + size)
        bad = rows % 2 == 0
        of_pair = (rows // 2).tolist()
        drawn = rng.choice(words, size=(size, 12))
        tone = np.where(rng.random(size) < np.where(bad, 0.6, 0.4), "as you wish", "on reflection")
        pair_ids = [f"{split}-pair-{i:07d}" for i in of_pair]
        requests = [f"What follows from {group_of_pair[i]}?" for i in of_pair]
        responses = [f"So {t} {' '.join(w)}" for t, w in zip(tone.tolist(), drawn.tolist(), strict=True)]
        traces = ["Let me think." if i % 3 == 0 else "" for i in of_pair]
        found = [_id(*row) for row in zip(pair_ids, requests, responses, traces, strict=True)]
        _check(found[0], pair_ids[0], requests[0], responses[0], traces[0])
        ids += found
        chosen = [CELLS[i] for i in cell[of_pair].tolist()]
        columns = {
            "id": found,
            "pair_id": pair_ids,
            "group_id": [group_of_pair[i] for i in of_pair],
            "category": [str(one.category) for one in chosen],
            "task": [str(one.task) for one in chosen],
            "subcategory": ["synthetic"] * size,
            "request": _messages("user", requests, [""] * size),
            "response": _messages("assistant", responses, traces),
            "label": np.where(bad, "misbehavior", "benign").tolist(),
            "label_source": ["known_answer"] * size,
            "construction": ["labelled"] * size,
            "cue": [""] * size,
            "subject_model": [""] * size,
            "gold_spans": [[]] * size,
            "source": [f"source {i}" for i in source[of_pair].tolist()],
            "licence": ["Apache-2.0"] * size,
            "split": [split.value] * size,
        }
        writer.write(pa.table([columns[name] for name in SAMPLE_SCHEMA.names], schema=SAMPLE_SCHEMA))
    writer.close()
    return ids


def _messages(role: str, contents: list[str], traces: list[str]) -> pa.Array:
    """One message a sample."""
    n = len(contents)
    kind = SAMPLE_SCHEMA.field("request").type.value_type
    calls = pa.array([[]] * n, type=kind.field("tool_calls").type)
    fields = [pa.array([role] * n), pa.array(contents), pa.array(traces), calls, pa.array([""] * n)]
    return pa.ListArray.from_arrays(
        pa.array(np.arange(n + 1), pa.int32()), pa.StructArray.from_arrays(fields, fields=list(kind))
    )


def _id(pair: str, request: str, response: str, trace: str) -> str:
    """`records.content_id` of these texts, which hold nothing that JSON escapes."""
    parts = ((request, "user", ""), (response, "assistant", trace))
    messages = ",".join(
        f'[{{"content":"{content}","role":"{role}","thinking":"{thinking}","tool_call_id":"","tool_calls":[]}}]'
        for content, role, thinking in parts
    )
    return hashlib.sha256(f'["{pair}",{messages}]'.encode()).hexdigest()[:16]


def _check(found: str, pair: str, request: str, response: str, trace: str) -> None:
    asked = (Message(role=Role.USER, content=request),)
    given = (Message(role=Role.ASSISTANT, content=response, thinking=trace),)
    if found != content_id(pair, asked, given):
        raise SystemExit("benchmarks/score_data.py: the ids are no longer those of the real samples")


def _log(path: Path, ids: list[str], seed: int) -> None:
    """The verdicts, in the order in which an engine that sorts its requests would end them."""
    rng = np.random.default_rng(seed)
    n = len(ids)
    bad = np.arange(n) % 2 == 0
    scores = 1 / (1 + np.exp(-rng.normal(np.where(bad, 0.8, -0.8), 1.5)))
    silent = rng.random(n) < 0.02
    with path.open("wb") as stream:
        for i in rng.permutation(n).tolist():
            evidence = (_QUOTE, _LOST)[: 1 + i % 2] if i % 4 == 0 else ()
            flagged = bool(scores[i] > 0.5)
            verdict = Verdict.model_construct(
                key=hashlib.sha256(ids[i].encode()).hexdigest()[:24],
                sample_id=ids[i],
                prompt="direct",
                answer="" if silent[i] else " yes" if flagged else " no",
                label=None if silent[i] else Label.MISBEHAVIOR if flagged else Label.BENIGN,
                unscored=UnscoredReason.NO_LABEL if silent[i] else None,
                score=float(scores[i]),
                label_mass=0.98,
                finish_reason="stop",
                quotes=tuple(one.quote for one in evidence),
                evidence=evidence,
                prompt_tokens=312,
                completion_tokens=1,
                seconds=0.0125,
            )
            stream.write(verdict.model_dump_json().encode() + b"\n")
