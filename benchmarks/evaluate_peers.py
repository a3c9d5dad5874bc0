"""Clients of one running vLLM server on the same samples: ours, lm-eval and Inspect AI; see `evaluate`.

Each run is a whole process. A run of two samples is what starting and ending costs; the judging rate is
that of the further samples. The server's prefix cache is emptied before every run.
"""

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.judged import Judged, judged_samples
from benchmarks.measuring import ROOT, Ratio, Result, environment, timed
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.prompts.wording import PromptWording
from monitorbench.runs.keyed_log import read_verdicts

PEERS = ROOT / ".venv-peers"
REQUIREMENTS = ROOT / "requirements" / "peers.txt"
CONCURRENCY, ROUNDS, FEW = 64, 2, 2


class Client(NamedTuple):
    """How to run a judge over all samples, or over the first `FEW` with `few` added to the command."""

    command: list[str]
    few: list[str]
    environment: dict[str, str]


def measure(work: str, settings: list[str]) -> Result:
    """Run all clients by turns; raises `SystemExit` where the peers can't be had, once ours is measured."""
    folder = Path(work) / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    missing = _make_environment()
    settings = ["engine.scores=fast", *settings]
    judged = judged_samples([*settings, "engine=vllm"])
    _write_samples(judged, folder)
    with _served(settings, folder) as url:
        clients = {"monitorbench": _ours(judged, settings, url)}
        if not missing:
            clients |= {"Inspect AI": _inspect(judged, folder, url), "lm-eval": _lm_eval(judged, folder, url)}
        result = _run_all(clients, len(judged.samples), url, folder)
    if missing:
        print(f"peers: only ours, {missing}")
        return result._replace(details={"skipped": missing})
    return result._replace(ratios={**result.ratios, **_differences(judged, folder)})


def _run_all(clients: dict[str, Client], n_samples: int, url: str, work: Path) -> Result:
    """Seconds of each client's two runs, the fastest of `ROUNDS`; the clients take turns."""
    fastest = {size: dict.fromkeys(clients, float("inf")) for size in ("few", "all")}
    for number in range(ROUNDS):
        for size, seconds in fastest.items():
            for name, client in clients.items():
                folder = work / f"{name.replace(' ', '-')}-{size}-{number}"
                command = client.command + (client.few if size == "few" else [])
                taken = _run(command, client.environment, folder, url)
                seconds[name] = min(seconds[name], taken)
    judging = {name: fastest["all"][name] - fastest["few"][name] for name in clients}
    rows = {
        name: {"samples/s": (n_samples - FEW) / judging[name], f"{FEW}_samples_seconds": fastest["few"][name]}
        for name in clients
    }
    ratios = {f"{FEW} samples through the server, ours, s": Ratio(fastest["few"]["monitorbench"], most=1.5)}
    for name, least in (("lm-eval", 5), ("Inspect AI", 1.3)):
        if name in clients:
            ratios[f"judging rate, ours / {name}"] = Ratio(
                judging[name] / judging["monitorbench"], least=least
            )
    return Result(rows, ratios)


def _run(command: list[str], changes: dict[str, str], folder: Path, url: str) -> float:
    """Seconds of one client's process; `{folder}` in the command is where it may write."""
    folder.mkdir(parents=True)
    root = url.removesuffix("/v1")
    urllib.request.urlopen(urllib.request.Request(f"{root}/reset_prefix_cache", b"")).close()
    parts = [part.replace("{folder}", str(folder)) for part in command]
    with (folder / "log").open("wb") as log:
        options = {"cwd": ROOT, "env": environment(**changes), "stdout": log, "stderr": log}
        seconds, done = timed(lambda: subprocess.run(parts, check=False, **options))  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{parts[0]} ended with exit code {done.returncode}, see {folder / 'log'}")
    return seconds


def _ours(judged: Judged, settings: list[str], url: str) -> Client:
    """`eval/evaluate.py engine=openai` against the server."""
    kept = [setting for setting in settings if not setting.startswith("engine")]
    command = [sys.executable, str(ROOT / "eval" / "evaluate.py"), *kept, "paths.runs={folder}"]
    command += ["engine=openai", f"engine.base_url={url}", f"engine.concurrency={CONCURRENCY}"]
    first = judged.samples[0]
    few = [f"dataset.test.subset={first.category}/{first.task}", "dataset.test.pairs_per_cell=1"]
    return Client(command, few, {})


def _inspect(judged: Judged, work: Path, url: str) -> Client:
    """Inspect's own command line on `evaluate_inspect.py`."""
    command = [str(PEERS / "bin" / "inspect"), "eval", "benchmarks/evaluate_inspect.py"]
    command += ["--model", f"openai-api/judge/{judged.study.monitor.name}", "--display", "none"]
    command += ["--max-connections", str(CONCURRENCY), "--max-samples", str(CONCURRENCY)]
    command += ["--log-dir", "{folder}", "--log-format", "json"]
    changes = {"JUDGE_BASE_URL": url, "JUDGE_API_KEY": "none"}
    return Client(command, ["--limit", str(FEW)], {**changes, "JUDGE_SAMPLES": str(work / "samples.jsonl")})


def _lm_eval(judged: Judged, work: Path, url: str) -> Client:
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
    changes = {"HF_HOME": str(work / "hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return Client(command, ["--limit", str(FEW)], changes)


def _differences(judged: Judged, work: Path) -> dict[str, Ratio]:
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
        raise SystemExit("no sample of lm-eval's is among Inspect's")
    largest = max(abs(score_of[key] - score) for key, score in ours.items())
    name = f"largest difference of lm-eval's log-odds and Inspect's ({len(gaps)} samples)"
    return {"largest difference of Inspect AI's score and ours": Ratio(largest), name: Ratio(max(gaps))}


def _write_samples(judged: Judged, work: Path) -> None:
    """Write the same prompts for everybody: as chat turns, and as the chat template's text."""
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
def _served(settings: list[str], work: Path) -> Iterator[str]:
    """Run `eval/serve.py` while the body runs; yields the base URL."""
    command = [sys.executable, str(ROOT / "eval" / "serve.py"), *settings, "engine=vllm"]
    command.append(f"paths.runs={work / 'runs'}")
    changed = environment(VLLM_SERVER_DEV_MODE="1")  # the server can be told to forget what it has cached
    with subprocess.Popen(command, cwd=ROOT, env=changed, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            folder = Path(server.stdout.readline().strip())
            if server.poll() is not None or not (folder / "server.json").is_file():
                raise SystemExit("eval/serve.py didn't start")
            address: dict[str, str] = json.loads((folder / "server.json").read_text())
            yield address["url"]
        finally:
            server.terminate()
            server.wait(60)


def _make_environment() -> str:
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
