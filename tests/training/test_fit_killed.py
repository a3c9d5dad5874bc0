"""A probe's fit on the real model, killed at five places of its work: it ends in the same bytes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_models import smollm2_folder

ROOT = Path(__file__).resolve().parents[2]
PLACES = (
    "behind half of the states",
    "in front of their line",
    "behind half of a line",
    "while fitting",
    "in front of the manifest",
)
FORKS = """
import json, os, runpy, signal, sys
from monitorbench.engines.stored import states
from monitorbench.judging import states as extracting
from monitorbench.runs import directory, keyed_log
from monitorbench.training import fit_head, heads
from transformers.models.llama import modeling_llama

def dies_at(place):
    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    calls = {"pwrite": 0, "write": 0, "goodness": 0}

    def nth(name, n):
        calls[name] += 1
        return calls[name] == n

    def pwrite(stream, content, offset, real=os.pwrite):
        if nth("pwrite", 2):
            real(stream, content[: len(content) // 2], offset)
            die()
        return real(stream, content, offset)

    def write(stream, content, real=os.write):
        if bytes(content).startswith(b'{"key"') and nth("write", 3):
            real(stream, content[: len(content) // 2])
            die()
        return real(stream, content)

    def append(log, record, real=keyed_log.KeyedLog.append):
        if len(log.entries) == 1:
            die()
        real(log, record)

    def goodness(*given, real=heads.goodness):
        return die() if nth("goodness", 3) else real(*given)

    def write_manifest(folder, manifest, real=directory.write_manifest):
        return die() if manifest["status"] == "done" else real(folder, manifest)

    match place:
        case "behind half of the states":
            os.pwrite = pwrite
        case "in front of their line":
            keyed_log.KeyedLog.append = append
        case "behind half of a line":
            os.write = write
        case "while fitting":
            heads.goodness = goodness
        case "in front of the manifest":
            directory.write_manifest = write_manifest

codes = []
for root, place in json.loads(sys.argv[1]):
    if not (pid := os.fork()):
        os.dup2(2, 1)
        dies_at(place)
        sys.argv = ["train/fit.py", f"paths.models={root}/models", f"paths.runs={root}/runs", *sys.argv[2:]]
        runpy.run_path(sys.argv[0], run_name="__main__")
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(json.dumps(codes))
"""
"""`train/fit.py` in processes that are forked from one, so that a run costs its work and not its imports."""


@pytest.mark.slow
def test_killed_at_five_places_it_ends_in_the_same_bytes(starter: Path, tmp_path: Path):
    """If it failed: an extraction of hours would begin anew after a kill, or end in another head."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    runs = [(str(whole), ""), *((str(killed), place) for place in PLACES), (str(killed), "")]
    command = [
        *(sys.executable, "-c", FORKS, json.dumps(runs)),
        *("head=attention", "head.layers=[0.1,0.15]", "head.window=40", "head.epochs=3"),
        *("engine=transformers", "engine.dtype=float32", "engine.device=cpu", "tracking=none"),
        *("dataset.train.subset=safety_permission/qa", "dataset.train.pairs_per_cell=2"),
        *("dataset.validation.subset=safety_permission/qa", "dataset.validation.pairs_per_cell=1"),
        *(f"monitor.path={smollm2_folder()}", f"paths.data={starter.parent}"),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [0, *([-9] * len(PLACES)), 0], done.stderr
    for pattern in ("models/states/*/states.f16", "runs/fit/*/head.safetensors", "runs/fit/*/search.json"):
        (file,) = whole.glob(pattern)
        content = file.read_bytes()
        assert content
        assert (killed / file.relative_to(whole)).read_bytes() == content, pattern
    assert rows(whole) == rows(killed)
    assert len(rows(whole)) == 6


def rows(root: Path) -> list[dict[str, Any]]:
    """The lines that say whose states are where; what each took aside, which a line's own checksum covers."""
    (file,) = root.glob("models/states/*/rows.jsonl")
    lines = [json.loads(line, object_pairs_hook=list) for line in file.read_text().splitlines()]
    return [dict(pairs[:-2]) for pairs in lines]
