"""Adapters that don't belong on their base: each is refused in one line before anything is generated."""

import logging
import re
import shutil

import pytest
import torch
from evaluation import evaluate
from sealed import seal
from spoil import edit_json, edit_tensors
from studies import study

from monitorbench.config.base import UserError
from monitorbench.engines.open import open_engine
from monitorbench.engines.stored.adapter import adapter_folder, refuse_unfit_adapter
from monitorbench.runs.directory import read_manifest

A = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"


def four_tensors(folder):
    edit_tensors(folder, lambda tensors: dict(sorted(tensors.items())[:4]))


def one_more(folder):
    edit_tensors(folder, lambda tensors: {**tensors, A.replace("layers.0", "layers.9"): torch.zeros(16, 32)})


def without_a_layer(folder):
    edit_tensors(folder, lambda tensors: {k: v for k, v in tensors.items() if "layers.1" not in k})


def another_rank(folder):
    edit_json(folder / "adapter_config.json", r=8)


def another_width(folder):
    edit_tensors(folder, lambda tensors: {**tensors, A: torch.zeros(16, 48)})


def cut_off(folder):
    file = folder / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])


def no_header(folder):
    (folder / "adapter_model.safetensors").write_bytes(b"\xff" * 100)


def empty(folder):
    (folder / "adapter_model.safetensors").write_bytes(b"")


def broken_json(folder):
    (folder / "adapter_config.json").write_text('{"r": 16')


def a_list(folder):
    (folder / "adapter_config.json").write_text("[1]")


def no_utf8(folder):
    (folder / "adapter_config.json").write_bytes(b"\xff\xfe{}")


def no_lora(folder):
    edit_json(folder / "adapter_config.json", peft_type="IA3")


def other_modules(folder):
    edit_json(folder / "adapter_config.json", target_modules=["c_attn"])


def broken_pattern(folder):
    edit_json(folder / "adapter_config.json", target_modules="(")


def no_number(folder):
    edit_json(folder / "adapter_config.json", r="sixteen")


def broken_base(folder):
    (folder / "base.json").write_text('{"sha256": 1}')


SPOILT = {
    four_tensors: r"24 of 28 tensors are missing, such as .*; expected a whole adapter",
    without_a_layer: r"14 of 28 tensors are missing",
    one_more: r"1 tensors have no place in this model, such as .*layers\.9",
    another_rank: r"lora_A.weight is 16×\d+, on this model and with r=8 it would be 8×\d+",
    another_width: r"q_proj\.lora_A\.weight is 16×48, .* would be 16×32",
    cut_off: r"adapter_model\.safetensors: can't be read",
    no_header: r"adapter_model\.safetensors: can't be read",
    empty: r"adapter_model\.safetensors: can't be read",
    broken_json: r"adapter_config\.json: not JSON",
    a_list: r"adapter_config\.json: no JSON object",
    no_utf8: r"adapter_config\.json: not JSON",
    no_lora: r"peft_type='IA3'; expected a LoRA",
    other_modules: r"adapter_config\.json: doesn't fit the model in .*c_attn",
    broken_pattern: r"adapter_config\.json: doesn't fit the model .*unterminated subpattern",
    no_number: r"adapter_config\.json: doesn't fit the model",
    broken_base: r"base\.json: not what `monitorbench train` writes",
}


def engine_settings():
    return study("engine.dtype=float32", "engine.device=cpu", primary="evaluate").engine


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_a_spoilt_adapter_is_refused_in_one_line(run, tiny, spoil):
    """If it failed: a part of an adapter would be judged under its name, or a traceback would be read."""
    spoil(run / "adapter")
    with pytest.raises(UserError, match=SPOILT[spoil]) as caught:
        open_engine(engine_settings(), tiny, [run / "adapter"], 2048)
    assert "\n" not in str(caught.value)


def test_the_whole_adapter_is_taken(run, tiny):
    """If it failed: nothing that was trained could be judged."""
    open_engine(engine_settings(), tiny, [run / "adapter"], 2048).close()


def test_another_base_of_equal_shape_is_refused(run, tiny, other_tiny):
    """If it failed: an adapter would be measured on weights that it was not trained on."""
    with pytest.raises(UserError, match=r"it was trained on other weights \(HuggingFaceTB/.*, sha256:"):
        refuse_unfit_adapter(run / "adapter", other_tiny)
    copy = shutil.copytree(tiny, run / "copy")
    (copy / "README.md").write_text("the same weights, from elsewhere")
    refuse_unfit_adapter(run / "adapter", copy)


def test_an_adapter_from_elsewhere_is_taken_and_said_to_be_one(run, tiny, other_tiny, caplog):
    """If it failed: adapters of others could not be judged, or nobody would know what is unknown."""
    (run / "adapter" / "base.json").unlink()
    edit_json(run / "adapter" / "adapter_config.json", base_model_name_or_path="somebody/else")
    with caplog.at_level(logging.WARNING, "monitorbench"):
        refuse_unfit_adapter(run / "adapter", other_tiny)
    (said,) = [record.getMessage() for record in caplog.records if record.name.startswith("monitorbench")]
    assert "doesn't say which weights it was trained on" in said
    assert "somebody/else" in said


@pytest.mark.parametrize(
    "settings",
    [
        {"target_modules": r".*\.(q|v)_proj"},
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
        {"target_modules": ["embed_tokens", "o_proj"]},
        {"target_modules": "all-linear", "use_dora": True, "rank_pattern": {"q_proj": 2}},
        {"target_modules": ["up_proj"], "layers_to_transform": [1], "bias": "lora_only"},
        {"target_modules": ["down_proj"], "init_lora_weights": "pissa"},
    ],
    ids=lambda settings: "-".join(settings),
)
def test_what_peft_saves_of_other_settings_is_whole(tiny, tmp_path, settings):
    """If it failed: sound adapters of others would be refused."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    lora = LoraConfig(r=4, task_type="CAUSAL_LM", **settings)
    get_peft_model(AutoModelForCausalLM.from_pretrained(tiny), lora).save_pretrained(tmp_path / "theirs")
    refuse_unfit_adapter(tmp_path / "theirs", tiny)


@pytest.mark.parametrize("where", ["", "adapter", "best", "checkpoints/checkpoint-1"])
def test_an_adapter_of_a_training_that_runs_is_refused(run, where):
    """If it failed: what a half-trained adapter says would be reported as the monitor's."""
    edit_json(run / "manifest.json", status="running")
    for part in ("best", "checkpoints/checkpoint-1"):
        shutil.copytree(run / "adapter", run / part)
    with pytest.raises(UserError, match="that training did not finish"):
        adapter_folder(run / where)


def test_a_pickle_is_refused(run):
    """If it failed: an adapter could run code of its own while it is loaded."""
    (run / "adapter" / "adapter_model.safetensors").unlink()
    (run / "adapter" / "adapter_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(UserError, match=r"its weights are a pickle \(adapter_model\.bin\)"):
        adapter_folder(run)


def flipped(folder):
    file = folder / "adapter_model.safetensors"
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)


def test_an_adapter_that_changed_since_its_training_is_refused(run):
    """If it failed: a flipped bit would be judged as the monitor that was trained."""
    assert adapter_folder(run) == run / "adapter"
    flipped(run / "adapter")
    for path in (run, run / "adapter"):
        with pytest.raises(UserError, match=r"adapter_model\.safetensors: not as it was written"):
            adapter_folder(path)


def running(folder):
    edit_json(folder.parent / "manifest.json", status="running")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (four_tensors, "24 of 28 tensors are missing"),
        (cut_off, "can't be read"),
        (broken_json, "adapter_config.json: not JSON"),
        (running, "that training did not finish"),
        (None, "it was trained on other weights"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_script_refuses_it_in_one_line(run, trained, tiny, other_tiny, tmp_path, spoil, message):
    """If it failed: the functions would refuse, and the command would end in a traceback or in numbers."""
    if spoil:
        spoil(run / "adapter")
    if spoil is not running:
        seal(run, read_manifest(trained))
    weights = tiny if spoil else other_tiny
    done = evaluate(tmp_path, f"monitor.path={weights}", f"monitor.adapter={run}")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if re.search("error", line, re.I)]
    assert message in line
    logs = (tmp_path / "runs" / "evaluate").glob("*/verdicts.jsonl")
    assert not any(log.read_bytes() for log in logs)
