"""What names a local model: every file that it can be loaded from, by name and content."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from evaluation import evaluate
from safetensors.torch import load_file, save_file
from small_models import SMOLLM2
from transformers import modeling_utils

from monitorbench.config.base import UserError
from monitorbench.engines.stored.model_folder import load_causal_lm, load_tokenizer, model_weights_sha256
from monitorbench.engines.weights import weights_folder, weights_identity
from monitorbench.runs.files import file_sha256


@pytest.fixture
def folder(tiny: Path, tmp_path: Path) -> Path:
    """A copy of a model."""
    return Path(shutil.copytree(tiny, tmp_path / "model"))


def identity(folder: Path) -> str:
    return weights_identity(SMOLLM2.model_copy(update={"path": folder}))


@pytest.mark.parametrize(
    "name",
    [
        *("vocab.txt", "vocab.json", "merges.txt", "tokenizer.model", "spiece.model", "qwen.tiktoken"),
        *(
            "special_tokens_map.json",
            "additional_chat_templates/tools.jinja",
            "added_tokens.json",
            "dict.bpe",
        ),
        *("model-00002-of-00002.safetensors", "generation_config.json", "tekken.json", "tokenizer.bin"),
    ],
)
def test_every_file_that_can_be_loaded_is_part_of_the_name(folder, name):
    """If it failed: two models would have one name, and the second would get the first's verdicts."""
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    names = set()
    for content in ("one", "two"):
        file.write_text(content)
        names.add(identity(folder))
    file.unlink()
    names.add(identity(folder))
    assert len(names) == 3


def test_a_folder_that_is_a_link_is_part_of_the_name(folder, tmp_path):
    """If it failed: chat templates that lie elsewhere could change unseen."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "additional_chat_templates").symlink_to(elsewhere)
    (elsewhere / "tools.jinja").write_text("one")
    first = identity(folder)
    (elsewhere / "tools.jinja").write_text("another")
    assert identity(folder) != first


def test_a_file_under_another_name_is_another_model(folder):
    """If it failed: a chat template that is not loaded any more would go unnoticed."""
    first = identity(folder)
    (folder / "chat_template.jinja").rename(folder / "chat_template2.jinja")
    assert identity(folder) != first


@pytest.mark.parametrize(
    "name", ["README.md", ".gitattributes", ".cache/huggingface/x.lock", "modeling.py", "pytorch_model.bin"]
)
def test_what_is_not_loaded_is_no_part_of_the_name(folder, name):
    """If it failed: a note or a pickle that nobody reads would cost all verdicts."""
    first = identity(folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("anything")
    assert identity(folder) == first


def test_the_name_is_the_same_wherever_the_folder_lies(folder, tiny):
    """If it failed: a colleague's copy would be another model."""
    assert identity(folder) == identity(tiny)


def pickled(folder: Path) -> None:
    """The same tensors as `torch.save` writes them."""
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def test_two_pickled_models_never_share_verdicts(folder, tmp_path):
    """If it failed: the second model would get the first one's verdicts within seconds."""
    pickled(folder)
    done = evaluate(tmp_path, f"monitor.path={folder}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"monitor.path={folder}: its weights are a pickle (pytorch_model.bin)" in done.stderr
    assert "expected *.safetensors, as AutoModelForCausalLM" in done.stderr


def names_a_pickle(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "transformers_weights": "pytorch_model.bin"}))


def leads_outside(folder: Path) -> None:
    index = {"weight_map": {"model.norm.weight": "../other/model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def without_a_shard(folder: Path) -> None:
    index = {"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def has_an_adapter(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (pickled, "its weights are a pickle"),
        (names_a_pickle, "'pytorch_model.bin' is to be its weights"),
        (leads_outside, "'../other/model.safetensors' is to be its weights"),
        (without_a_shard, "model-00002-of-00002.safetensors is not there"),
        (has_an_adapter, "an adapter lies in it"),
        (no_weights, "no weights; expected \\*.safetensors"),
        (broken_config, "config.json: not JSON"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_folder_that_would_load_something_else_is_refused(folder, tmp_path, spoil, message):
    """If it failed: what is judged would not be what the name says."""
    spoil(folder)
    monitor = SMOLLM2.model_copy(update={"path": folder})
    for refused in (weights_identity, lambda monitor: weights_folder(monitor, tmp_path)):
        with pytest.raises(UserError, match=message) as caught:
            refused(monitor)
        assert "\n" not in str(caught.value)


def test_every_shard_is_part_of_the_weights(folder):
    """If it failed: an adapter would be taken on a base of which one shard is another's."""
    from transformers import AutoModelForCausalLM

    AutoModelForCausalLM.from_pretrained(folder).save_pretrained(folder, max_shard_size="1MB")
    (folder / "model.safetensors").unlink(missing_ok=True)
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    names = {model_weights_sha256(folder)}
    for shard in shards:
        content = bytearray(shard.read_bytes())
        content[-1] ^= 1
        shard.write_bytes(content)
        names.add(model_weights_sha256(folder))
    assert len(names) == len(shards) + 1


def test_the_weights_alone_are_known_wherever_they_come_from(folder, tiny, other_tiny, tmp_path):
    """If it failed: an adapter would be refused on a copy of its base, or taken on another."""
    (folder / "chat_template.jinja").write_text("another")
    (folder / "consolidated.safetensors").write_bytes(b"the same, for another library")
    assert model_weights_sha256(folder) == model_weights_sha256(tiny) != model_weights_sha256(other_tiny)
    # The hub's cache names a large file by its SHA-256.
    blob = tmp_path / "blobs" / file_sha256(folder / "model.safetensors")
    blob.parent.mkdir()
    (folder / "model.safetensors").rename(blob)
    (folder / "model.safetensors").symlink_to(blob)
    assert model_weights_sha256(folder) == model_weights_sha256(tiny)


def test_weights_that_are_cut_off_are_refused_in_one_line(folder):
    """If it failed: a broken download would end in a traceback of the reader."""
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(UserError, match="its weights can't be read") as caught:
        load_causal_lm(folder, torch.float32)
    assert "\n" not in str(caught.value)


def test_weights_that_lack_a_tensor_are_refused(folder):
    """If it failed: transformers fills it at random, and every run would judge with another model."""
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(next(name for name in tensors if name.endswith("q_proj.weight")))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"1 of the model's tensors are not in its weights, such as .*q_proj"):
        load_causal_lm(folder, torch.float32)


def test_only_weights_of_the_dtype_that_is_asked_for_are_mapped(folder, monkeypatch):
    """If it failed: converting a bfloat16 file would take its size in memory beside the converted model."""
    calls, opens = [], modeling_utils.safe_open

    def reads(file, **how):
        calls.append(how)
        return opens(file, **how)

    monkeypatch.setattr(modeling_utils, "safe_open", reads)
    models = [load_causal_lm(folder, dtype) for dtype in (torch.bfloat16, torch.float32)]
    assert [how["backend"] for how in calls] == ["pread", "mmap"]
    assert [next(model.parameters()).dtype for model in models] == [torch.bfloat16, torch.float32]


@pytest.mark.slow
def test_a_model_is_loaded_without_what_nothing_here_uses(folder):
    """If it failed: a guardrail of a small model would take 200 MB more, and each start a second."""
    code = (
        "import pathlib, sys; from monitorbench.engines.stored import model_folder as loads;"
        "folder = pathlib.Path(sys.argv[1]); loads.load_tokenizer(folder);"
        "loads.load_causal_lm(folder, 'float32');"
        "print(*sorted({'boto3', 'scipy', 'sklearn', 'pandas', 'triton'} & {*sys.modules}));"
        "import scipy.special, sklearn"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ([] if not torch.cuda.is_available() else ["triton"])


def test_a_tokenizer_is_each_caller_s_own_and_a_changed_one_is_read_again(tiny: Path, tmp_path: Path):
    """If it failed: prompts would be written by the chat template of the model that stood there before."""
    folder = Path(shutil.copytree(tiny, tmp_path / "model"))
    first, again = load_tokenizer(folder), load_tokenizer(folder)
    first.chat_template = "changed by its caller"
    assert again.chat_template == load_tokenizer(folder).chat_template != first.chat_template
    for file in folder.glob("chat_template*"):
        file.unlink()
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    new = {**settings, "chat_template": "{{ messages[0]['content'] }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(new))
    assert load_tokenizer(folder).chat_template == new["chat_template"]
    assert load_tokenizer(folder)("Who was it?").input_ids == again("Who was it?").input_ids
