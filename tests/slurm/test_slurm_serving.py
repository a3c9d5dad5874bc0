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
pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def _everywhere() -> str:
    """All of this machine's addresses, where it has a name that others could use."""
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
    return "0.0.0.0"


def _told(log: Path) -> str:
    """What a log says, on one line: where its lines end, a path decides."""
    return " ".join(log.read_text().split())


def _judged(checkout: Path, data: str) -> int:
    """The verdicts that are on disk of the evaluations of a dataset."""
    logs = checkout.glob(f"runs/evaluate/*{data}*/verdicts.jsonl")
    return sum(log.read_bytes().count(b"\n") for log in logs)


def test_evaluations_find_their_server_also_after_its_requeue(slurm: Cluster, checkout: Path):
    """An address that a person has to read in a log and type in is wrong after every requeue; what was
    judged until then would be judged, and paid for in hours, again."""
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

    # The server is preempted in the middle of another evaluation: its last four questions wait for a minute.
    n = results["results"]["n"]
    few_samples(checkout / "later.jsonl", about="disk")
    asking = submitted(
        slurm,
        checkout,
        *("slurm/submit.py", "eval/evaluate.py", "engine=served", "engine.server=smol"),
        *(f"monitor.path={smollm2_folder()}", f"engine.requests_per_minute={n - 4}", "engine.max_retries=1"),
        *("dataset=jsonl", "dataset.path=later.jsonl", "dataset.name=later"),
        *("tracking=none", "cluster.cpus=1"),
    )
    log = asking.sweep / "run-000.log"
    until(lambda: _judged(checkout, "later") == n - 4, "all verdicts but four")
    slurm.ask("scancel", "--batch", "--signal=USR1", f"{serving.job}_0")
    until(lambda: slurm.jobs(serving.job)[0]["Restarts"] == "1", "the server's requeue", 120)
    assert json.loads(address.read_text())["url"] is None
    slurm.ask("scontrol", "update", f"JobId={serving.job}_0", "StartTime=now+3")
    assert wait(slurm, asking.job) == {0: "FAILED"}, log.read_text()
    assert _told(log).endswith("4 requests not answered")

    again = submitted(slurm, checkout, "slurm/resume.py", str(asking.sweep))
    assert wait(slurm, again.job) == {0: "COMPLETED"}, log.read_text()
    assert f"4 of {n} samples to judge ({n - 4} known)" in _told(log)
    later = json.loads((asking.sweep / "run-000.done" / "manifest.json").read_text())["results"]
    assert (later["n"], later["n_unscored"]) == (n, 0)
    assert json.loads(address.read_text())["key"] not in (None, key), "each start has a key of its own"

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
