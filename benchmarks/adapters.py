"""Six adapters of one base judged in one start of vLLM, against a start for each.

    python benchmarks/adapters.py [PAIRS]

SmolLM2-135M with six LoRA adapters of random weights, over PAIRS (10) test pairs of each cell of the starter;
both sides are eval/evaluate.py with its own settings but for float32, in processes of their own, and judge
anew. The verdicts of both have to be the same: labels equal, scores within 0.01. In bfloat16 what
happens to be batched together moves a score by more.
"""

import os
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path

from evaluate_samples import composed
from measure import ROOT, measured

from monitorbench.corpus.build import ensure
from monitorbench.engines.stored.load import load_causal_lm
from monitorbench.engines.weights import weights_folder
from monitorbench.records import Split
from monitorbench.runs.verdict_log import read_verdicts

N_ADAPTERS = 6
CLOSE = 0.01


def main() -> None:
    """Judge in both ways, compare, print."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    settings = [
        "monitor=smollm2_135m",
        "engine=vllm",
        "engine.dtype=float32",
        "tracking=none",
        f"dataset.test.pairs_per_cell={pairs}",
    ]
    study = composed(settings)
    ensure(study, [Split.TEST])
    weights = weights_folder(study.monitor, study.paths.models)
    with tempfile.TemporaryDirectory(prefix="adapters-") as work:
        adapters = [
            random_adapter(weights, Path(work) / f"adapter{seed}", seed) for seed in range(N_ADAPTERS)
        ]
        began = time.monotonic()
        apart = [judged(settings, Path(work) / "apart", [adapter]) for adapter in adapters]
        seconds_apart = time.monotonic() - began
        began = time.monotonic()
        judged(settings, Path(work) / "together", adapters)
        seconds_together = time.monotonic() - began
        print(f"{N_ADAPTERS} adapters, {os.cpu_count()} cores")
        print(f"a start for each  {seconds_apart:6.1f} s, peak {max(apart):,.0f} MiB")
        print(f"one start         {seconds_together:6.1f} s")
        print(f"ratio             {seconds_apart / seconds_together:6.2f}", flush=True)
        n, largest = compare([Path(work) / "apart", Path(work) / "together"])
    print(f"{n} verdicts: the same labels, largest difference of a score {largest:.2g}")


def judged(settings: list[str], runs: Path, adapters: list[Path]) -> float:
    """Run eval/evaluate.py; its peak memory in MiB."""
    first, *more = adapters
    command = [sys.executable, str(ROOT / "eval" / "evaluate.py"), *settings, f"paths.runs={runs}"]
    command += [f"monitor.adapter={first}", f"adapters=[{','.join(map(str, more))}]"]
    return measured(command).peak_mib


def compare(folders: list[Path]) -> tuple[int, float]:
    """How many verdicts both have, and the largest difference of a score; ends where they differ."""
    apart, together = (
        {
            verdict.key: verdict
            for verdict in chain.from_iterable(map(read_verdicts, folder.glob("evaluate/*/verdicts.jsonl")))
        }
        for folder in folders
    )
    if apart.keys() != together.keys():
        raise SystemExit("the two ways did not judge the same")
    largest = 0.0
    for key, one in apart.items():
        other = together[key]
        if (one.score is None) != (other.score is None):
            raise SystemExit(f"{key}: a score in one way only")
        if one.score is not None and other.score is not None:
            largest = max(largest, abs(one.score - other.score))
        if one.label != other.label and abs((one.score or 0.0) - 0.5) > CLOSE:
            raise SystemExit(f"{key}: {one.label} alone, {other.label} in company")
    if largest > CLOSE:
        raise SystemExit(f"scores differ by {largest:.3g}")
    return len(apart), largest


def random_adapter(weights: Path, folder: Path, seed: int) -> Path:
    """A LoRA adapter that changes the answers, in its own way."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(load_causal_lm(weights, torch.float32), lora)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.02)
    model.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main()
