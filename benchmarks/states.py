"""Extraction of hidden states to disk beside a plain forward pass of the same model over the same prompts.

The prompts are samples of the starter's train split, rendered beforehand. In one process every prompt goes
through each way, one after another and each time another one first: a plain forward pass at full depth and
one of the model cut at the layer that the attention head reads, one prompt at a time and with a single row of
logits, and what train/fit.py does for a head, up to its line on disk. Then each way runs alone over the
twenty longest prompts, for its peak memory. The bar is .9 of the plain pass's speed.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.measuring import Ratio, Result, apart, composed, in_turns
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.protocol import Request
from monitorbench.engines.stored.model_folder import load_causal_lm, load_config
from monitorbench.engines.transformers_engine import layer_numbers
from monitorbench.engines.weights import weights_folder
from monitorbench.judging.states import States
from monitorbench.records import Split

LONGEST, BAR = 20, 0.9
FULL, CUT = "plain pass, full depth", "plain pass, cut"
_POOLED = ("head=linear", "head.layers=[0.6]")
WAYS = {
    "pooled, six layers to full depth": (FULL, ("head=linear",)),
    "pooled, cut": (CUT, _POOLED),
    "pooled in windows, cut": (CUT, (*_POOLED, "head.positions=[mean,max]", "head.window=128")),
    "tokens, cut": (CUT, ("head=attention",)),
    "tokens, cut, int8": (CUT, ("head=attention", "head.storage=int8")),
}
"""States that are extracted, and the plain pass that each is measured by."""
WARM_UP = Request(token_ids=tuple(range(3, 40)), key="warm-up", response=(10, 30))
"""Run before the clock begins: loading the model, and what torch does at its first pass."""


class Way(NamedTuple):
    """A way that is ready to run, and the folder it writes."""

    run: Callable[[Request], object]
    folder: Path | None


def main(work: Path, *, prompts: int, settings: list[str]) -> Result:
    """Run all ways in turns, then each alone, and compare."""
    settings = [f"paths.data={work / 'data'}", *settings]
    study, texts = _rendered(work, prompts, settings)
    seconds = dict.fromkeys((FULL, CUT, *WAYS), 0.0)
    with ExitStack() as closing:
        ways = {name: _open_way(name, settings, work / "together", closing) for name in seconds}
        before = {name: _size_mib(way.folder) for name, way in ways.items()}
        for number, text in enumerate(texts):
            for name in in_turns(ways, number):
                began = time.perf_counter()
                ways[name].run(text)
                seconds[name] += time.perf_counter() - began
        disk = {name: _size_mib(way.folder) - before[name] for name, way in ways.items()}
    n_tokens = sum(len(text.token_ids) for text in texts)
    rows = {}
    for name, taken in seconds.items():
        peak = apart("states:alone", name, work, prompts, settings).peak_mib
        on_disk = 1000 * disk[name] / len(texts)
        rows[name] = {"tokens/s": n_tokens / taken, "peak_mib": peak, "mib_of_1000_prompts": on_disk}
    ratios = {name: Ratio(seconds[plain] / seconds[name], least=BAR) for name, (plain, _) in WAYS.items()}
    details = {"monitor": study.monitor.name, "dtype": study.engine.precision}
    return Result(rows, ratios, {**details, "prompts": len(texts), "tokens": n_tokens})


def alone(name: str, work: str, n_prompts: int, settings: list[str]) -> None:
    """Run one way over the longest prompts, for whoever watches its memory."""
    _, texts = _rendered(Path(work), n_prompts, settings)
    with ExitStack() as closing:
        run = _open_way(name, settings, Path(work) / "alone", closing).run
        for text in sorted(texts, key=lambda text: -len(text.token_ids))[:LONGEST]:
            run(text)


def _study(settings: Sequence[str]) -> Study:
    return composed("evaluate", [*settings, "engine=transformers", "tracking=none"])


def _rendered(work: Path, n_prompts: int, settings: Sequence[str]) -> tuple[Study, list[Request]]:
    """The study, and prompts from all over the train split."""
    study = _study(settings)
    samples = list(read_split(ensure(study, [Split.TRAIN]), Split.TRAIN, study.dataset.train))
    states = _states_of(study, work / "rendering")
    chosen = samples[:: max(1, len(samples) // n_prompts)][:n_prompts]
    return study, [states.rendering.prompt(sample) for sample in chosen]


def _open_way(name: str, settings: Sequence[str], work: Path, closing: ExitStack) -> Way:
    """Ready a plain pass or an extraction, its model loaded."""
    plain, head = WAYS.get(name, (name, ("head=attention",)))
    study = _study([*settings, *head])
    if name == plain:
        run = _plain_pass(study, is_cut=name == CUT)
        run(WARM_UP)
        return Way(run, None)
    states = closing.enter_context(_states_of(study, work / name))
    list(states.extract([WARM_UP]))
    return Way(lambda text: list(states.extract([text])), states.folder)


def _states_of(study: Study, models: Path) -> States:
    """The states of the study's head, below a folder that is empty."""
    monitor = study.monitor.model_copy(update={"path": weights_folder(study.monitor, study.paths.models)})
    head = study.head
    reads = (head.layers, head.positions, head.window, head.storage)
    return States(monitor, study.engine, study.prompt, models, *reads)


def _plain_pass(study: Study, *, is_cut: bool) -> Callable[[Request], object]:
    """The model's own forward pass, of one prompt and without a cache."""
    weights = weights_folder(study.monitor, study.paths.models)
    model = load_causal_lm(weights, getattr(torch, study.engine.precision)).eval()
    decoder: Any = model.get_decoder()
    if is_cut:
        (layer,) = layer_numbers(load_config(weights).num_hidden_layers, study.head.layers)
        decoder.layers = decoder.layers[:layer]

    def run(text: Request) -> object:
        ids_1T = torch.tensor([list(text.token_ids)], device=decoder.device)
        with torch.inference_mode():
            return model(input_ids=ids_1T, use_cache=False, logits_to_keep=1)

    return run


def _size_mib(folder: Path | None) -> float:
    """Size of the files in a folder; 0 where there is none."""
    return sum(file.stat().st_size for file in folder.iterdir()) / 2**20 if folder else 0.0
