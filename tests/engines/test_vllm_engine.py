"""Real vLLM on the CPU: the same scores as transformers, in process and as a server."""

import itertools
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest
from small_models import planted_samples, smollm2_folder
from studies import study
from transformers import AutoTokenizer

from monitorbench.engines.open import open_engine
from monitorbench.engines.protocol import Decoding
from monitorbench.prompts.label_tokens import score
from monitorbench.prompts.render import Renderer

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed (make setup, Linux x86-64)"),
]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    return random_adapter(tmp_path_factory.mktemp("adapter"), 1)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return random_adapter(tmp_path_factory.mktemp("other"), 2)


def random_adapter(folder, seed):
    """A LoRA adapter with random weights, so that it changes the answers."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    lora = LoraConfig(
        r=16,
        lora_alpha=64,
        target_modules="all-linear",
        init_lora_weights="gaussian",
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(smollm2_folder(), dtype=torch.float32), lora)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.02)
    model.save_pretrained(folder)
    return folder


def scores(engine_config, adapters):
    """Scores of the base and of each adapter for a few prompts, some of them sharing a prefix."""
    weights = smollm2_folder()
    renderer = Renderer(study().prompt, AutoTokenizer.from_pretrained(weights))
    prompts = [renderer.render(item) for item in planted_samples(4, seed=5)]
    decoding = Decoding(1, (renderer.end_of_turn,), renderer.label_tokens.all)
    engine = open_engine(engine_config, weights, adapters, 1024)
    engine.take(adapters[0])
    found = []
    try:
        abandoned = engine.complete(prompts, decoding, with_adapter=False)
        next(abandoned)
        abandoned.close()  # what was asked then must not come back below
        for taken in (None, *adapters):
            engine.take(taken)
            completions = sorted(engine.complete(prompts, decoding))
            found.append([score(one.logprobs, renderer.label_tokens).score for _, one in completions])
        return found
    finally:
        engine.close()


def test_both_engines_give_the_same_scores(adapter, other):
    """If it failed: a threshold found with one engine would be wrong with the other.

    Or one adapter would be judged under another's name, where several take turns on one engine.
    """
    adapters = [adapter, other]
    ours = scores(study("engine.dtype=float32", "engine.device=cpu").engine, adapters)
    theirs = scores(study("engine=vllm", "engine.dtype=float32", "engine.batch_size=3").engine, adapters)

    for one, same in zip(ours, theirs, strict=True):
        assert same == pytest.approx(one, abs=1e-2)
    for one, another in itertools.combinations(ours, 2):
        assert max(abs(a - b) for a, b in zip(one, another, strict=True)) > 0.05


def first_logprob(url, model):
    body = {"model": model, "prompt": "Yes or no?", "max_tokens": 1, "logprobs": 1}
    request = urllib.request.Request(
        f"{url}/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["choices"][0]["logprobs"]["token_logprobs"][0]


def test_the_server_answers_and_ends_with_us(adapter, other, tmp_path):
    """If it failed: a served monitor would outlive its job, or never be found by its evaluators.

    Or one of two adapters would answer in the other's name.
    """
    command = [
        *(sys.executable, str(ROOT / "eval" / "serve.py"), "engine=vllm", "monitor.context_tokens=1024"),
        *(f"monitor.path={smollm2_folder()}", f"monitor.adapter={adapter}", f"paths.runs={tmp_path}"),
        f"adapters=[{other}]",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            directory = Path(process.stdout.readline().strip())
            assert directory.is_dir(), "serve.py ended before it was healthy"
            address = json.loads((directory / "server.json").read_text())
            found = [first_logprob(address["url"], f"smollm2_135m+{one.name}") for one in (adapter, other)]
            assert max(found) <= 0
            assert found[0] != found[1]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()  # else the `with` would wait for it for good
                raise
    assert process.returncode == 0
    assert not (directory / "server.json").exists()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address["url"], timeout=5)
    deadline = time.monotonic() + 10  # a killed process takes a moment to go
    while running_in_group(address["pid"]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not running_in_group(address["pid"])


def running_in_group(group: int) -> list[str]:
    """The processes of a group that still run; a zombie waits for init alone, which a container may lack."""
    states = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state != "Z":
            states.append(f"{stat.parent.name} is {state}")
    return states
