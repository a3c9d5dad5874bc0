"""A model and its probe in one server against the model alone, and the probe alone cut at its layer: latency.

    python benchmarks/probe_latency.py [--requests 200] [--head RUN] [monitor=… engine.…=…]

Three judging servers (`judging/pair/server.py`) in this process, each with a model of its own: `model`,
`pair` (`monitor.head_beside`) and `probe` (`monitor.head`). One client sends each request to all three over
the loopback, one at a time and in turning order, so that a noisy machine disturbs all alike. `--head` is a
run of `train/fit.py`; without it a head that reads layer .6 of the depth at the mean over the response, whose
weights are zero: latency does not depend on them. Settings are those of `eval/evaluate.py`; samples that the
context can't hold are left out. Prints a table and writes `runs/benchmarks/probe_latency/ratios.json`.
"""

import argparse
import http.client
import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from evaluate_samples import Judged, judged_samples

from monitorbench.config.engine import with_states
from monitorbench.config.monitor import Monitor
from monitorbench.engines.hidden_states import layer_numbers
from monitorbench.engines.stored.head import FILE, FittedHead, ReadFrom
from monitorbench.engines.stored.load import load_config
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.pair.judge import open_judges
from monitorbench.judging.pair.server import listening
from monitorbench.judging.states import rendering

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "runs" / "benchmarks" / "probe_latency"
SHARE = 0.6
WARM_UP = 3
BAR = "<= 1.05"


class Answered(NamedTuple):
    """One answer and how long the client waited for it."""

    seconds: float
    answer: dict[str, Any]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--requests", type=int, default=200, help="the first so many samples of the test split"
    )
    parser.add_argument("--head", type=Path, help="a run of train/fit.py for the monitor and the prompt")
    parser.add_argument("overrides", nargs="*", help="settings, as for eval/evaluate.py")
    asked = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    judged = judged_samples(["engine=transformers", *asked.overrides])
    head = asked.head or zero_head(judged)
    model = judged.study.monitor
    monitors = {
        "model": model,
        "pair": model.model_copy(update={"head_beside": head}),
        "probe": model.model_copy(update={"head": head}),
    }
    bodies = requests(judged, asked.requests)
    with ExitStack() as running:
        clients = {name: running.enter_context(served(judged, one)) for name, one in monitors.items()}
        for body in bodies[:WARM_UP]:
            for client in clients.values():
                ask(client, body)
        found = interleaved(clients, bodies)
    report(found, judged)


def zero_head(judged: Judged) -> Path:
    """A head that says .5 of everything, at the cost of any other."""
    study, config = judged.study, load_config(judged.weights)
    (layer,) = layer_numbers(config.num_hidden_layers, [SHARE])
    zeros = np.zeros(config.hidden_size, np.float32)
    reads = ReadFrom(
        weights=weights_identity(study.monitor),
        rendering=rendering(study.prompt, study.monitor),
        shares=(SHARE,),
        positions=("mean",),
        layer=layer,
        position="mean",
    )
    tensors = {"mean": zeros, "scale": zeros + 1, "v": zeros, "c": np.zeros(1, np.float32)}
    FittedHead(reads, tensors).save(WORK / FILE)
    return WORK / FILE


def requests(judged: Judged, most: int) -> list[bytes]:
    """What the client sends: samples that fit the context, in the dataset's order."""
    fits = judged.study.monitor.context_tokens - judged.study.prompt.most_tokens
    pairs = zip(judged.samples, judged.prompts, strict=True)
    samples = [sample for sample, ids in pairs if len(ids) <= fits][:most]
    return [
        json.dumps(sample.model_dump(mode="json", include={"request", "response"})).encode()
        for sample in samples
    ]


@contextmanager
def served(judged: Judged, monitor: Monitor) -> Iterator[http.client.HTTPConnection]:
    """A client of a server that judges with this monitor."""
    study = judged.study
    engine = with_states(study.engine)
    with (
        open_judges(monitor, engine, study.prompt, study.paths.models) as judges,
        listening(judges, "127.0.0.1", 0, None) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
        try:
            yield client
        finally:
            client.close()
            server.shutdown()


def ask(client: http.client.HTTPConnection, body: bytes) -> Answered:
    """One request on a connection of its own, from opening it to the answer's last byte."""
    began = time.perf_counter()
    client.request("POST", "/judge", body, {"Content-Type": "application/json"})
    answer = client.getresponse()
    content = answer.read()
    seconds = time.perf_counter() - began
    client.close()
    if answer.status != 200:
        raise SystemExit(f"benchmarks/probe_latency.py: {answer.status} {content.decode()[:200]}")
    return Answered(seconds, json.loads(content))


def interleaved(
    clients: dict[str, http.client.HTTPConnection], bodies: list[bytes]
) -> dict[str, list[Answered]]:
    """By server the answers, in the order of the requests; who is asked first turns."""
    found: dict[str, list[Answered]] = {name: [] for name in clients}
    names = list(clients)
    for number, body in enumerate(bodies):
        for shift in range(len(names)):
            name = names[(number + shift) % len(names)]
            found[name].append(ask(clients[name], body))
    return found


def report(found: dict[str, list[Answered]], judged: Judged) -> None:
    """Print and write."""
    seconds = {name: np.array([one.seconds for one in answers]) for name, answers in found.items()}
    tokens = [one.answer["prompt_tokens"] for one in found["model"]]
    print(
        f"\n{len(tokens)} requests, one at a time, of {np.mean(tokens):.0f} tokens"
        f" (median {np.median(tokens):.0f})"
    )
    rows = {
        name: {
            "p50": float(np.percentile(of, 50)),
            "p95": float(np.percentile(of, 95)),
            "mean": float(of.mean()),
        }
        for name, of in seconds.items()
    }
    for name, row in rows.items():
        print(f"  {name:<10} p50 {row['p50']:8.4f} s   p95 {row['p95']:8.4f} s   mean {row['mean']:8.4f} s")
    paired = seconds["pair"] / seconds["model"]
    ratios = {
        "pair / model alone, p50": (rows["pair"]["p50"] / rows["model"]["p50"], BAR),
        "pair / model alone, p95": (rows["pair"]["p95"] / rows["model"]["p95"], BAR),
        "pair / model alone, median over the requests": (float(np.median(paired)), BAR),
        "probe alone / model alone, p50": (rows["probe"]["p50"] / rows["model"]["p50"], ""),
    }
    differences = {
        "the model's score": largest(found, "pair", "model", probe=False),
        "the probe's score": largest(found, "pair", "probe", probe=True),
    }
    for name, (value, bar) in ratios.items():
        print(f"{name:<54} {value:7.3f} {bar}")
    for name, value in differences.items():
        print(f"largest difference of {name}: {value:.1e}")
    measured = {
        "requests": len(tokens),
        "tokens": tokens,
        "seconds": {name: of.tolist() for name, of in seconds.items()},
        "percentiles": rows,
        "quartiles of pair / model alone": np.percentile(paired, [25, 75]).tolist(),
        "largest_score_difference": differences,
        "settings": judged.study.engine.model_dump(mode="json"),
    }
    (WORK / "ratios.json").write_text(json.dumps({"ratios": ratios, "measured": measured}, indent=2) + "\n")
    print(WORK)


def largest(found: dict[str, list[Answered]], one: str, other: str, *, probe: bool) -> float:
    """The largest difference between two servers' scores; of `one` its probe's with `probe`."""
    return max(
        abs((a.answer["probe"] if probe else a.answer)["score"] - b.answer["score"])
        for a, b in zip(found[one], found[other], strict=True)
    )


if __name__ == "__main__":
    main()
