"""Training speed and memory beside a stock `trl.SFTTrainer`, alternating, in one run.

    python benchmarks/train.py              # 64 samples, two rounds
    python benchmarks/train.py 16 1         # so many samples and rounds

SmolLM2-135M in bf16 on two threads, about 400 tokens a sample, eight samples a step; each measurement is
a process of its own. A side's time is the better of its rounds, its memory the larger. Says where the time
goes and how near the machine's own matmul rate it comes. Prints a table and writes
`runs/benchmarks/train/ratios.json`.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "runs" / "benchmarks" / "train"


def main() -> None:
    """Measure and print."""
    n_samples, rounds = (int(given) for given in (*sys.argv[1:3], *("64", "2")[len(sys.argv) - 1 :]))
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    size = side("data", n_samples)["tokens_per_sample"]
    print(f"{n_samples} samples of {size:.0f} tokens", flush=True)
    rows: dict[str, list[dict[str, Any]]] = {"ours": [], "stock": []}
    for _ in range(rounds):
        for name, measured in rows.items():
            measured.append(side(name, n_samples))
            show(name, measured[-1])
    rates = side("matmul", n_samples)
    ours, stock = (min(rows[name], key=lambda row: row["seconds"]) for name in ("ours", "stock"))
    peak = {name: max(row["peak_mib"] for row in measured) for name, measured in rows.items()}
    apart = [abs(a - b) / b for a, b in zip(ours["losses"], stock["losses"], strict=True)]
    ratios = {
        "tokens_per_second_over_stock": ours["tokens_per_second"] / stock["tokens_per_second"],
        "cpu_seconds_stock_over_ours": stock["cpu_seconds"] / ours["cpu_seconds"],
        "peak_memory_over_stock": peak["ours"] / peak["stock"],
        "mean_loss_apart": abs(sum(ours["losses"]) - sum(stock["losses"])) / sum(stock["losses"]),
        "largest_loss_apart": max(apart),
        "share_of_matmul_rate": ours["gflops"] / rates["bfloat16"],
    }
    for name, ratio in ratios.items():
        print(f"{name:<32} {ratio:7.3f}")
    print(f"matmul: {rates['bfloat16']:.0f} GFLOP/s in bf16, {rates['float32']:.0f} in fp32")
    (WORK / "ratios.json").write_text(
        json.dumps({"ratios": ratios, "matmul_gflops": rates, "measured": rows}, indent=2) + "\n"
    )


def side(name: str, n_samples: int) -> dict[str, Any]:
    """Run one side; its last line on stdout is what it measured."""
    command = [sys.executable, str(ROOT / "benchmarks" / "train_side.py"), name, str(WORK), str(n_samples)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"benchmarks/train.py: {name} ended with exit code {done.returncode}")
    measured: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return measured


def show(name: str, row: dict[str, Any]) -> None:
    """One line a measurement."""
    shares = ", ".join(f"{part} {share:.0%}" for part, share in row["shares"].items())
    print(
        f"{name:<6} {row['seconds']:6.1f} s {row['tokens_per_second']:6.0f} tokens/s "
        f"{row['peak_mib']:6.0f} MiB {row['gflops']:5.0f} GFLOP/s; {shares}",
        flush=True,
    )


if __name__ == "__main__":
    main()
