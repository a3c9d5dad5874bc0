"""vLLM's own server as a Slurm job, and an evaluation that finds it."""

import json
import socket
import stat
from pathlib import Path

import pytest
from cluster import Cluster
from launching import ENDED, few_samples, launch, submitted, until, wait
from small_models import smollm2_folder

pytest.importorskip("vllm", reason="vLLM is not installed here")
pytestmark = pytest.mark.slurm


def _everywhere() -> str:
    """All of this machine's addresses, where it has a name that others could use."""
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
    return "0.0.0.0"


def test_an_evaluation_finds_its_server(slurm: Cluster, checkout: Path):
    """An address that a person has to read in a log and type in is wrong after every requeue."""
    few_samples(checkout / "mine.jsonl")
    address = checkout / "runs" / "servers" / "smol.json"
    judging = submitted(
        slurm,
        checkout,
        *("slurm/submit.py", "eval/evaluate.py", "engine=served", "engine.server=smol"),
        f"monitor.path={smollm2_folder()}",
        *("dataset=jsonl", "dataset.path=mine.jsonl", "tracking=none", "cluster.cpus=1"),
    )
    serving = submitted(
        slurm,
        checkout,
        *("slurm/submit.py", "eval/serve.py", "engine=vllm", f"engine.host={_everywhere()}"),
        *("engine.served_as=smol", f"monitor.path={smollm2_folder()}", "cluster.cpus=1"),
    )
    until(lambda: address.is_file() or set(slurm.states(serving.job).values()) & ENDED, "the server", 400)
    assert address.is_file(), (serving.sweep / "run-000.log").read_text()
    key = json.loads(address.read_text())["key"]
    assert stat.S_IMODE(address.stat().st_mode) == 0o600
    assert wait(slurm, judging.job, 400) == {0: "COMPLETED"}, (judging.sweep / "run-000.log").read_text()

    run = (judging.sweep / "run-000.done").resolve()
    results = json.loads((run / "manifest.json").read_text())
    assert results["identity"]["judge"]["weights"].startswith("served:")
    assert results["results"]["n"] > results["results"]["n_unscored"] == 0
    files = [file for file in checkout.rglob("*") if file.is_file() and file.stat().st_size < 10**7]
    telling = {file.name for file in files if key.encode() in file.read_bytes()}
    assert telling == {"server.json", "smol.json"}, "the key is in no log and no frozen run"

    slurm.ask("scancel", str(serving.job))
    wait(slurm, serving.job, 120)
    assert json.loads(address.read_text())["key"] is None
    again = launch(
        slurm,
        checkout,
        *("eval/evaluate.py", "engine=served", "engine.server=smol"),
        f"monitor.path={smollm2_folder()}",
        *("dataset=jsonl", "dataset.path=mine.jsonl", "tracking=none"),
    )
    assert again.stdout.strip().endswith(run.name), f"what is finished needs no server: {again.stderr}"
