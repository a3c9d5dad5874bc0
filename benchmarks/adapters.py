"""Six adapters of one base judged in one start of vLLM, against a start for each.

SmolLM2-135M with LoRA adapters of random weights, over 10 test pairs of each cell of the starter; both sides
are eval/evaluate.py with its own settings but for float32, in processes of their own, and judge anew. The
verdicts of both have to be the same: labels equal, scores within 0.01. In bfloat16 what happens to be batched
together moves a score by more.
"""

from itertools import chain
from pathlib import Path

from benchmarks.measuring import Measured, Ratio, Result, composed, script
from monitorbench.corpus.build import ensure
from monitorbench.engines.stored.model_folder import load_causal_lm
from monitorbench.engines.weights import weights_folder
from monitorbench.records import Split
from monitorbench.runs.keyed_log import read_verdicts

CLOSE = 0.01


def main(work: Path, *, adapters: int, settings: list[str]) -> Result:
    """Judge in both ways, and compare."""
    base = ["monitor=smollm2_135m", "engine=vllm", "engine.dtype=float32", "tracking=none"]
    settings = [*base, "dataset.test.pairs_per_cell=10", f"paths.data={work / 'data'}", *settings]
    study = composed("evaluate", settings)
    ensure(study, [Split.TEST])
    weights = weights_folder(study.monitor, study.paths.models)
    folders = [_random_adapter(weights, work / f"adapter{seed}", seed) for seed in range(adapters)]
    apart = [_judge(settings, work / "apart", [folder]) for folder in folders]
    together = _judge(settings, work / "together", folders)
    seconds = sum(run.seconds for run in apart)
    n, difference = _compare(work / "apart", work / "together")
    rows = {
        "a start for each": {"seconds": seconds, "peak_mib": max(run.peak_mib for run in apart)},
        "one start": together.row,
    }
    ratios = {
        "seconds_apart_over_together": Ratio(seconds / together.seconds),
        "largest_score_difference": Ratio(difference, most=CLOSE),
    }
    return Result(rows, ratios, {"adapters": adapters, "verdicts": n})


def _judge(settings: list[str], runs: Path, adapters: list[Path]) -> Measured:
    """Run eval/evaluate.py with these adapters."""
    first, *more = adapters
    more_setting = f"adapters=[{','.join(map(str, more))}]"
    command = [*settings, f"paths.runs={runs}", f"monitor.adapter={first}", more_setting]
    return script("eval/evaluate.py", *command)


def _compare(apart: Path, together: Path) -> tuple[int, float]:
    """Count the verdicts and find the largest difference of a score; end where labels or verdicts differ."""
    first, second = (
        {v.key: v for v in chain.from_iterable(map(read_verdicts, runs.glob("evaluate/*/verdicts.jsonl")))}
        for runs in (apart, together)
    )
    if first.keys() != second.keys():
        raise SystemExit("adapters: the two ways did not judge the same")
    largest = 0.0
    for key, alone in first.items():
        score, other_score = alone.score, second[key].score
        if (score is None) != (other_score is None):
            raise SystemExit(f"adapters: {key}: a score in one way only")
        if score is not None and other_score is not None:
            largest = max(largest, abs(score - other_score))
        if alone.label != second[key].label and abs((score or 0.0) - 0.5) > CLOSE:
            raise SystemExit(f"adapters: {key}: {alone.label} alone, {second[key].label} in company")
    if largest > CLOSE:
        raise SystemExit(f"adapters: scores differ by {largest:.3g}")
    return len(first), largest


def _random_adapter(weights: Path, folder: Path, seed: int) -> Path:
    """Make a LoRA adapter that changes the answers, in its own way."""
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
