"""Clients of one running vLLM server on the same samples: ours, lm-eval and Inspect AI; see evaluate.py.

    python benchmarks/evaluate_peers.py OUT.json [SETTINGS]

Each run is a whole process. A run of two samples is what starting and ending costs; the judging rate is
that of the further samples. The server's prefix cache is emptied before every run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from evaluate_samples import ROOT, Judged, judged_samples

from monitorbench.engines.stored.load import load_tokenizer
from monitorbench.prompts.wording import PromptWording
from monitorbench.runs.verdict_log import read_verdicts

PEERS = ROOT / ".venv-peers"
REQUIREMENTS = ROOT / "requirements" / "peers.txt"
CONCURRENCY = 64
ROUNDS = 2
FEW = 2


class Client(NamedTuple):
    """How to run a judge over the first `FEW` or all samples: command and what its environment adds."""

    few: list[str]
    all: list[str]
    environment: dict[str, str]


def main() -> None:
    """Measure, print and write."""
    out, *overrides = sys.argv[1:]
    work = Path(out).parent / "peers"
    work.mkdir(parents=True, exist_ok=True)
    missing = make_environment()
    judged = judged_samples([*overrides, "engine=vllm"])
    write_samples(judged, work)
    with served(overrides, work) as url:
        clients = {"monitorbench": ours(judged, overrides, work, url)}
        if not missing:
            clients |= {"Inspect AI": inspect(judged, work, url), "lm-eval": lm_eval(judged, work, url)}
        measured = run_all(clients, url, work)
    if not missing:
        measured["differences"] = differences(judged, work)
        for name, gap in measured["differences"].items():
            print(f"  largest difference of {name}: {gap:.3f}")
    else:
        print(f"peers: skipped, {missing}")
        measured["skipped"] = missing
    Path(out).write_text(json.dumps(measured, indent=2) + "\n")


def run_all(clients: dict[str, Client], url: str, work: Path) -> dict[str, Any]:
    """Seconds of each client's two runs, the fastest of `ROUNDS`; the clients take turns."""
    few: dict[str, float] = {}
    every: dict[str, float] = {}
    for number in range(ROUNDS):
        for fastest, size in ((few, "few"), (every, "all")):
            for name, client in clients.items():
                folder = work / f"{name.replace(' ', '-')}-{size}-{number}"
                command = client.few if size == "few" else client.all
                seconds = run(command, client.environment, folder, url)
                fastest[name] = min(fastest.get(name, float("inf")), seconds)
    further = sum(1 for _ in (work / "samples.jsonl").open()) - FEW
    judging = {name: every[name] - few[name] for name in clients}
    print(f"\nclients of one server, {further + FEW} samples, {CONCURRENCY} at once; fastest of {ROUNDS}")
    for name in clients:
        print(f"  {name:<54} {further / judging[name]:6.2f} /s   {FEW} samples {few[name]:5.1f} s")
    ratios: dict[str, tuple[float, str]] = {
        f"{FEW} samples through the server, ours, s": (few["monitorbench"], "<= 1.5")
    }
    for name, bar in (("lm-eval", ">= 5"), ("Inspect AI", ">= 1")):
        if name in clients:
            ratios[f"judging rate, ours / {name}"] = (judging[name] / judging["monitorbench"], bar)
    return {"judging_seconds": judging, "few_seconds": few, "ratios": ratios}


def run(command: list[str], environment: dict[str, str], folder: Path, url: str) -> float:
    """Seconds of one client's process; `{folder}` in the command is where it may write."""
    folder.mkdir(parents=True)
    root = url.removesuffix("/v1")
    urllib.request.urlopen(urllib.request.Request(f"{root}/reset_prefix_cache", b"")).close()
    parts = [part.replace("{folder}", str(folder)) for part in command]
    with (folder / "log").open("wb") as log:
        began = time.perf_counter()
        code = subprocess.run(
            parts, cwd=ROOT, env={**os.environ, **environment}, stdout=log, stderr=log, check=False
        ).returncode
        seconds = time.perf_counter() - began
    if code:
        raise SystemExit(f"benchmarks/evaluate_peers.py: {parts[0]} ended with {code}, see {folder / 'log'}")
    return seconds


def ours(judged: Judged, overrides: list[str], work: Path, url: str) -> Client:
    """`eval/evaluate.py engine=openai` against the server."""
    command = [sys.executable, str(ROOT / "eval" / "evaluate.py"), *overrides]
    command = [part for part in command if not part.startswith("engine")]
    command += ["engine=openai", f"engine.base_url={url}", f"engine.concurrency={CONCURRENCY}"]
    command.append("paths.runs={folder}")
    first = judged.samples[0]
    cell = [f"dataset.test.subset={first.category}/{first.task}", "dataset.test.pairs_per_cell=1"]
    return Client([*command, *cell], command, {})


def inspect(judged: Judged, work: Path, url: str) -> Client:
    """Inspect's own command line on `evaluate_inspect.py`."""
    command = [str(PEERS / "bin" / "inspect"), "eval", "benchmarks/evaluate_inspect.py"]
    command += ["--model", f"openai-api/judge/{judged.study.monitor.name}", "--display", "none"]
    command += ["--max-connections", str(CONCURRENCY), "--max-samples", str(CONCURRENCY)]
    command += ["--log-dir", "{folder}", "--log-format", "json"]
    environment = {"JUDGE_BASE_URL": url, "JUDGE_API_KEY": "none"}
    environment["JUDGE_SAMPLES"] = str(work / "samples.jsonl")
    return Client([*command, "--limit", str(FEW)], command, environment)


def lm_eval(judged: Judged, work: Path, url: str) -> Client:
    """lm-eval's `multiple_choice` over completions: one request with log-probabilities a choice."""
    words = judged.study.prompt.label_words
    task = {
        "task": "judge",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(work / "samples.jsonl")}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{text}}",
        "doc_to_choice": [words.misbehavior, words.benign],
        "doc_to_target": "{{target}}",
        "target_delimiter": "",
        "metric_list": [{"metric": "acc"}],
    }
    (work / "tasks").mkdir()
    (work / "tasks" / "judge.yaml").write_text(json.dumps(task))  # JSON is YAML
    model = {
        "model": judged.study.monitor.name,
        "base_url": f"{url}/completions",
        "tokenizer": str(judged.weights.resolve()),
        "num_concurrent": CONCURRENCY,
        "max_length": judged.study.monitor.context_tokens,
    }
    command = [str(PEERS / "bin" / "lm_eval"), "--model", "local-completions", "--tasks", "judge"]
    command += ["--model_args", ",".join(f"{name}={value}" for name, value in model.items())]
    command += ["--include_path", str(work / "tasks"), "--output_path", "{folder}", "--log_samples"]
    environment = {"HF_HOME": str(work / "hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return Client([*command, "--limit", str(FEW)], command, environment)


def differences(judged: Judged, work: Path) -> dict[str, float]:
    """How far the peers' numbers are from ours over all samples: the prompts were the same ones.

    lm-eval asks for one spelling of each label; its log-odds are compared with Inspect's of these two.
    """
    words = judged.study.prompt.label_words
    (log,) = (work / "monitorbench-all-0").glob("evaluate/*/verdicts.jsonl")
    (inspected,) = (work / "Inspect-AI-all-0").glob("*.json")
    (harness,) = (work / "lm-eval-all-0").glob("**/samples_*.jsonl")
    score_of: dict[str, float] = {}
    log_odds_of: dict[str, float] = {}
    for sample in json.loads(inspected.read_text())["samples"]:
        score_of[sample["id"]] = sample["scores"]["judge"]["value"]
        (position,) = sample["output"]["choices"][0]["logprobs"]["content"]
        top = {token["token"]: token["logprob"] for token in position["top_logprobs"]}
        if words.misbehavior in top and words.benign in top:
            log_odds_of[sample["id"]] = top[words.misbehavior] - top[words.benign]
    ours = {v.sample_id: v.score for v in read_verdicts(log) if v.score is not None}
    gaps = []
    for line in harness.read_text().splitlines():
        row = json.loads(line)
        if row["doc"]["id"] in log_odds_of:
            misbehavior, benign = (float(choice[0]) for choice in row["filtered_resps"])
            gaps.append(abs(misbehavior - benign - log_odds_of[row["doc"]["id"]]))
    if not gaps:
        raise SystemExit("benchmarks/evaluate_peers.py: no sample of lm-eval's is among Inspect's")
    return {
        "Inspect AI's score and ours": max(abs(score_of[key] - score) for key, score in ours.items()),
        f"lm-eval's log-odds and Inspect's ({len(gaps)} samples)": max(gaps),
    }


def write_samples(judged: Judged, work: Path) -> None:
    """The same prompts for everybody: as chat turns, and as the chat template's text."""
    wording = PromptWording(judged.study.prompt)
    tokenizer = load_tokenizer(judged.weights)
    with (work / "samples.jsonl").open("w") as stream:
        for sample in judged.samples:
            user = wording.user(sample)
            turns = [{"role": "system", "content": wording.system}, {"role": "user", "content": user}]
            text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            target = 0 if sample.label.value == "misbehavior" else 1
            row = {"id": sample.id, "system": wording.system, "user": user, "text": text, "target": target}
            stream.write(json.dumps(row) + "\n")


@contextmanager
def served(overrides: list[str], work: Path) -> Iterator[str]:
    """`eval/serve.py` while the body runs; gives the base URL."""
    command = [sys.executable, str(ROOT / "eval" / "serve.py"), *overrides, "engine=vllm"]
    # With it the server can be told to forget what it has cached.
    environment = {**os.environ, "VLLM_SERVER_DEV_MODE": "1"}
    command.append(f"paths.runs={work / 'runs'}")
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            folder = Path(server.stdout.readline().strip())
            if server.poll() is not None or not (folder / "server.json").is_file():
                raise SystemExit("benchmarks/evaluate_peers.py: eval/serve.py didn't start")
            address: dict[str, str] = json.loads((folder / "server.json").read_text())
            yield address["url"]
        finally:
            server.terminate()
            server.wait(60)


def make_environment() -> str:
    """Make `.venv-peers` where it is missing or outdated; why it can't be had, else nothing."""
    stamp = PEERS / "requirements.txt"
    if stamp.is_file() and stamp.read_text() == REQUIREMENTS.read_text():
        return ""
    print(f"peers: installing {REQUIREMENTS.relative_to(ROOT)} into {PEERS.name} (a few minutes, once)")
    pip = [str(PEERS / "bin" / "python"), "-m", "pip", "install", "--quiet", "-r", str(REQUIREMENTS)]
    for command in ([sys.executable, "-m", "venv", "--clear", str(PEERS)], pip):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            why = re.sub(r"\s+", " ", (done.stderr or done.stdout).strip().splitlines()[-1])
            return f"{REQUIREMENTS.relative_to(ROOT)} can't be installed: {why}"
    shutil.copy(REQUIREMENTS, stamp)
    return ""


if __name__ == "__main__":
    main()
