"""Code that comes with a model or a tokenizer is never run, whatever is typed."""

import json
import shutil
from pathlib import Path

import pytest
from evaluation import evaluate

from monitorbench.config.base import UserError
from monitorbench.engines.stored.model_folder import load_causal_lm, load_config, load_tokenizer

CODE = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
Path("{mark}").touch()
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
class Config(LlamaConfig):
    model_type = "foreign"
class Model(LlamaForCausalLM):
    config_class = Config
class Tokenizer(PreTrainedTokenizerFast):
    pass
"""


def edit(file: Path, **changes: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that is there once foreign code ran."""
    return tmp_path / "foreign code ran"


@pytest.fixture
def model(tiny: Path, tmp_path: Path, mark: Path) -> Path:
    """A model whose configuration and classes are its own."""
    folder = Path(shutil.copytree(tiny, tmp_path / "foreign"))
    (folder / "code.py").write_text(CODE.format(mark=mark))
    classes = {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}
    edit(folder / "config.json", model_type="foreign", auto_map=classes)
    return folder


@pytest.fixture
def tokenizer_folder(tiny: Path, tmp_path: Path, mark: Path) -> Path:
    """A model of a known kind, with a tokenizer of its own."""
    folder = Path(shutil.copytree(tiny, tmp_path / "foreign"))
    (folder / "code.py").write_text(CODE.format(mark=mark))
    classes = {"AutoTokenizer": ["code.Tokenizer", None]}
    edit(folder / "tokenizer_config.json", tokenizer_class="Tokenizer", auto_map=classes)
    return folder


@pytest.mark.parametrize("load", [load_config, lambda folder: load_causal_lm(folder, "float32")])
def test_a_model_with_code_of_its_own_is_refused_in_one_line(model, mark, load):
    """If it failed: judging a model would give its author this machine."""
    with pytest.raises(UserError, match="code that comes with a model is never run here") as caught:
        load(model)
    assert "\n" not in str(caught.value)
    assert not mark.exists()


def test_a_tokenizer_with_code_of_its_own_never_runs_it(tokenizer_folder, mark):
    """If it failed: reading a tokenizer would run its author's code."""
    with pytest.raises(UserError, match="code that comes with a model is never run here"):
        load_tokenizer(tokenizer_folder)
    assert not mark.exists()


@pytest.mark.parametrize("kind", ["model", "tokenizer_folder"])
def test_a_yes_on_the_terminal_runs_nothing(request, tmp_path, mark, kind):
    """If it failed: whoever presses y would run foreign code with all rights."""
    folder = request.getfixturevalue(kind)
    done = evaluate(tmp_path, f"monitor.path={folder}", typed="y\n" * 20)
    assert not mark.exists()
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert f"{folder}: it needs code of its own" in done.stderr
