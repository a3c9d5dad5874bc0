"""Extraction of hidden states to disk beside a plain forward pass of the same model over the same prompts.

    python benchmarks/states.py [PROMPTS] [SETTINGS]

PROMPTS (200) samples of the starter's train split, rendered beforehand; SETTINGS as of eval/evaluate.py.
In one process every prompt goes through each way, one after another and each time another one first: a plain
forward pass at full depth and one of the model cut at the layer that the attention head reads, one prompt at
a time and with a single row of logits, and what train/fit.py does for a head, up to its line on disk. Then
each way runs alone over the twenty longest prompts, for its peak memory.
Prints a table and writes `runs/benchmarks/states/ratios.json`; the bar is .9 of the plain pass's speed.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from evaluate_samples import composed
from measure import ROOT, measured

from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.stored.load import load_config
from monitorbench.engines.weights import weights_folder
from monitorbench.judging.states import States, StatesPrompt
from monitorbench.records import Split

WORK = ROOT / "runs" / "benchmarks" / "states"
PROMPTS, LONGEST = 200, 20
BAR = 0.9
FULL, CUT = "plain pass, full depth", "plain pass, cut"
WAYS = {
    "pooled, six layers to full depth": (FULL, ["head=linear"]),
    "pooled, cut": (CUT, ["head=linear", "head.layers=[0.6]"]),
    "pooled in windows, cut": (
        CUT,
        ["head=linear", "head.layers=[0.6]", "head.positions=[mean,max]", "head.window=128"],
    ),
    "tokens, cut": (CUT, ["head=attention"]),
    "tokens, cut, int8": (CUT, ["head=attention", "head.storage=int8"]),
}
"""What is extracted, and which plain pass it is measured by."""
Run = Callable[[StatesPrompt], object]


class Opened(NamedTuple):
    """A way that is ready to run, and the folder it writes."""

    run: Run
    folder: Path | None


def main(n_prompts: int, settings: list[str]) -> None:
    """Measure and print."""
    shutil.rmtree(WORK, ignore_errors=True)
    study, prompts = rendered(n_prompts, settings)
    n_tokens = sum(len(prompt.ids) for prompt in prompts)
    with ExitStack() as closing:
        opened = {name: open_way(name, settings, WORK / "together", closing) for name in (FULL, CUT, *WAYS)}
        folders = {name: one.folder for name, one in opened.items() if one.folder}
        warm_mib = {name: size_mib(folder) for name, folder in folders.items()}
        seconds = alternating({name: one.run for name, one in opened.items()}, prompts)
        disk_mib = {
            name: (size_mib(folder) - warm_mib[name]) / len(prompts) for name, folder in folders.items()
        }
    rows: dict[str, dict[str, float]] = {}
    for name, taken in seconds.items():
        alone = [sys.executable, __file__, "--alone", name, str(n_prompts), *settings]
        rows[name] = {"tokens_per_second": n_tokens / taken, "peak_mib": measured(alone).peak_mib}
        if name in disk_mib:
            rows[name]["disk_mib_of_1000_prompts"] = 1000 * disk_mib[name]
    ratios = {
        name: rows[name]["tokens_per_second"] / rows[plain]["tokens_per_second"]
        for name, (plain, _) in WAYS.items()
    }
    print(f"{len(prompts)} prompts, {n_tokens:,} tokens, {study.monitor.name}, {study.engine.resolved_dtype}")
    for name, row in rows.items():
        disk = f"{row['disk_mib_of_1000_prompts']:9.1f}" if name in disk_mib else " " * 9
        ratio = f"{ratios[name]:6.3f}" if name in ratios else ""
        speed, peak = row["tokens_per_second"], row["peak_mib"]
        print(f"{name:<34} {speed:9.0f} tokens/s {peak:7.0f} MiB {disk} MiB on disk of 1,000 {ratio}")
    print(f"bar: {BAR} of the plain pass of the same depth; the lowest is {min(ratios.values()):.3f}")
    found = {"prompts": len(prompts), "tokens": n_tokens, "bar": BAR, "ratios": ratios, "measured": rows}
    (WORK / "ratios.json").write_text(json.dumps(found, indent=2) + "\n")


def alone(name: str, n_prompts: int, settings: list[str]) -> None:
    """One way over the longest prompts, for whoever watches its memory."""
    _, prompts = rendered(n_prompts, settings)
    with ExitStack() as closing:
        run = open_way(name, settings, WORK / "alone", closing).run
        for prompt in sorted(prompts, key=lambda one: -len(one.ids))[:LONGEST]:
            run(prompt)


def rendered(n_prompts: int, settings: Sequence[str]) -> tuple[Study, list[StatesPrompt]]:
    """The study, and prompts from all over the train split."""
    study = composed([*settings, "engine=transformers", "tracking=none"])
    samples = list(read_split(ensure(study, [Split.TRAIN]), Split.TRAIN, study.dataset.train))
    reads = states_of(study, WORK / "rendering")
    return study, [reads.prompt(one) for one in samples[:: max(1, len(samples) // n_prompts)][:n_prompts]]


def open_way(name: str, settings: Sequence[str], work: Path, closing: ExitStack) -> Opened:
    """Ready a plain pass or an extraction, its model loaded."""
    plain, head = WAYS.get(name, (name, ["head=attention"]))
    study = composed([*settings, "engine=transformers", "tracking=none", *head])
    if name == plain:
        return Opened(plain_pass(study, is_cut=name == CUT), None)
    reads = closing.enter_context(states_of(study, work / name))
    # Before the clock begins: loading the model, and what torch does at its first pass.
    list(reads.extract([StatesPrompt(tuple(range(3, 40)), (10, 30), "warm-up")]))
    return Opened(lambda prompt: list(reads.extract([prompt])), reads.folder)


def states_of(study: Study, models: Path) -> States:
    """The states of the study's head, below a folder that is empty."""
    monitor = study.monitor.model_copy(update={"path": weights_folder(study.monitor, study.paths.models)})
    head = study.head
    return States(
        monitor, study.engine, study.prompt, models, head.layers, head.positions, head.window, head.storage
    )


def plain_pass(study: Study, *, is_cut: bool) -> Run:
    """The model's own forward pass, of one prompt and without a cache."""
    import torch

    from monitorbench.engines.hidden_states import layer_numbers
    from monitorbench.engines.stored.load import load_causal_lm

    weights = weights_folder(study.monitor, study.paths.models)
    model = load_causal_lm(weights, getattr(torch, study.engine.resolved_dtype)).eval()
    decoder: Any = model.get_decoder()
    if is_cut:
        (layer,) = layer_numbers(load_config(weights).num_hidden_layers, study.head.layers)
        decoder.layers = decoder.layers[:layer]

    @torch.inference_mode()
    def run(prompt: StatesPrompt) -> object:
        ids_1T = torch.tensor([list(prompt.ids)], device=decoder.device)
        return model(input_ids=ids_1T, use_cache=False, logits_to_keep=1)

    run(StatesPrompt(tuple(range(3, 40)), (10, 30), "warm-up"))
    return run


def alternating(ways: dict[str, Run], prompts: Sequence[StatesPrompt]) -> dict[str, float]:
    """Seconds of each way over all prompts; who is first changes from prompt to prompt."""
    seconds = dict.fromkeys(ways, 0.0)
    names = list(ways)
    for number, prompt in enumerate(prompts):
        for turn in range(len(names)):
            name = names[(number + turn) % len(names)]
            began = time.perf_counter()
            ways[name](prompt)
            seconds[name] += time.perf_counter() - began
    return seconds


def size_mib(folder: Path) -> float:
    """Of the files in a folder."""
    return sum(file.stat().st_size for file in folder.iterdir()) / 2**20


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        alone(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    else:
        given = sys.argv[1:]
        number = int(given.pop(0)) if given and given[0].isdigit() else PROMPTS
        main(number, given)
