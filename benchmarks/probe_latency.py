"""A model and its probe in one server against the model alone, and the probe alone cut at its layer: latency.

Three judging servers (`judging/pair/server.py`) in this process, each with a model of its own: `model`,
`pair` (`monitor.head_beside`) and `probe` (`monitor.head`). One client sends each request to all three over
the loopback, one at a time and in turning order, so that a noisy machine disturbs all alike. `--head` is a
run of `train/fit.py`; without it a head that reads layer .6 of the depth at the mean over the response, whose
weights are zero: latency does not depend on them. Samples that the context can't hold are left out.
"""

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks import clients as c
from benchmarks.judged import Judged, body_of, judged_samples
from benchmarks.measuring import Ratio, Result, in_turns
from monitorbench.config.engine import with_states
from monitorbench.engines.hidden_states import layer_numbers
from monitorbench.engines.stored.head import FILE, FittedHead, ReadFrom
from monitorbench.engines.stored.load import load_config
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.pair.judge import open_judges
from monitorbench.judging.pair.server import listening
from monitorbench.judging.states import rendering

SHARE, WARM_UP, BAR = 0.6, 3, 1.05


def main(work: Path, *, requests: int, head: str, settings: list[str]) -> Result:
    """Ask all three servers in turns, and compare."""
    judged = judged_samples(["engine=transformers", f"paths.data={work / 'data'}", *settings])
    study, model = judged.study, judged.study.monitor
    probe = Path(head) if head else _zero_head(judged, work / FILE)
    changes = {"model": {}, "pair": {"head_beside": probe}, "probe": {"head": probe}}
    replies: dict[str, list[c.Reply]] = {name: [] for name in changes}
    bodies = [body_of(sample) for sample in judged.fitting(requests)]
    with ExitStack() as stack:
        ports = {}
        for name, change in changes.items():
            monitor, engine = model.model_copy(update=change), with_states(study.engine)
            judges = stack.enter_context(open_judges(monitor, engine, study.prompt, study.paths.models))
            server = stack.enter_context(listening(judges, "127.0.0.1", 0, None))
            ports[name] = stack.enter_context(c.running(server))
        for number, body in enumerate([*bodies[:WARM_UP], *bodies], start=-min(WARM_UP, len(bodies))):
            for name in in_turns(ports, number):
                reply = c.ask(ports[name], body, "/judge")
                if reply.status != 200:
                    raise SystemExit(f"probe_latency: {reply.status} {str(reply.answer)[:200]}")
                replies[name] += [reply] if number >= 0 else []
    rows = {name: c.percentiles(c.answered(of_server)) for name, of_server in replies.items()}
    p50, p95 = ({name: row[f"p{share} ms"] for name, row in rows.items()} for share in (50, 95))
    paired = np.array(c.answered(replies["pair"])) / c.answered(replies["model"])
    ratios = {
        "pair / model alone, p50": Ratio(p50["pair"] / p50["model"], most=BAR),
        "pair / model alone, p95": Ratio(p95["pair"] / p95["model"], most=BAR),
        "pair / model alone, median over the requests": Ratio(float(np.median(paired)), most=BAR),
        "probe alone / model alone, p50": Ratio(p50["probe"] / p50["model"]),
        "largest difference of the model's score": Ratio(_largest(replies, "model")),
        "largest difference of the probe's score": Ratio(_largest(replies, "probe")),
    }
    details = {
        "tokens": [reply.answer["prompt_tokens"] for reply in replies["model"]],
        "seconds": {name: c.answered(of_server) for name, of_server in replies.items()},
        "quartiles of pair / model alone": np.percentile(paired, [25, 75]).tolist(),
        "settings": study.engine.model_dump(mode="json"),
    }
    return Result(rows, ratios, details)


def _zero_head(judged: Judged, file: Path) -> Path:
    """Save a head that says .5 of everything, at the cost of any other."""
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
    FittedHead(reads, tensors).save(file)
    return file


def _largest(replies: dict[str, list[c.Reply]], name: str) -> float:
    """The largest difference between the score that `name` gives alone and beside the other."""
    differences: list[float] = []
    for pair, alone in zip(replies["pair"], replies[name], strict=True):
        answer = pair.answer["probe"] if name == "probe" else pair.answer
        differences.append(abs(answer["score"] - alone.answer["score"]))
    return max(differences)
