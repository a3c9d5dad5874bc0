"""What several rooms need: a tokenizer, samples to order, a composed study, the built starter.

Property tests draw the same examples every time and are never judged by their speed: few examples in
`make test`, as many as they ask for in `make test-slow`. Nothing here reaches the network.
"""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings
from matplotlib.figure import Figure

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when huggingface_hub is imported

import composing
import fitted
from drawing import FAST
from small_models import smollm2_folder, tiny_model
from studies import study

from monitorbench.config.study import Study
from monitorbench.records import (
    Category,
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Sample,
    Task,
)

composing.remember()
fitted.remember()
settings.register_profile("thorough", deadline=None, derandomize=True, database=None)
settings.register_profile("fast", settings.get_profile("thorough"), max_examples=FAST)
settings.load_profile("fast")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores Ctrl-C, and so would all that the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
LONGEST = ("tests/smoke/test_demo.py", "tests/docs/", "tests/doctor/", "tests/training/")
"""Where tests of minutes are: begun last, one of them would keep one core busy and leave the other idle."""
SAVE = Figure.savefig


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest; tests of a file stay together, for its fixtures."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def _save_empty(figure: Figure, file: Any, **_: Any) -> None:
    width, height = figure.get_size_inches() * 72
    file.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt"><g id="empty"/></svg>'
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Write figures empty, which saves four fifths of a page's work, unless the test is about them."""
    Figure.savefig = SAVE if item.get_closest_marker("figures") else _save_empty  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """SmolLM2's tokenizer, as the converted model has it. Copy before changing it."""
    pytest.importorskip("transformers")
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smollm2_folder())


def _messages(given: Any, role: Role) -> tuple[Message, ...]:
    return (Message(role=role, content=given),) if isinstance(given, str) else tuple(given)


@pytest.fixture(scope="session")
def make_sample() -> Callable[..., Sample]:
    """Make a sample; request and response may be plain strings, everything else has a default."""

    def make(request: Any = "What is two plus two?", response: Any = "Four.", **fields: Any) -> Sample:
        return Sample.model_validate(
            {
                "pair_id": "pair",
                "group_id": "group",
                "category": Category.SYCOPHANCY_BIAS,
                "task": Task.QA,
                "subcategory": "praise",
                "label": Label.BENIGN,
                "label_source": LabelSource.AUTHOR,
                "construction": Construction.HANDWRITTEN,
                "source": "tests",
                "licence": "Apache-2.0",
                **fields,
                "request": _messages(request, Role.USER),
                "response": _messages(response, Role.ASSISTANT),
            }
        )

    return make


@pytest.fixture(scope="session")
def compose_study() -> Callable[..., Study]:
    """Compose and validate a study: `compose_study("evaluate", "monitor=qwen3_4b")`."""

    def composed(primary: str = "evaluate", *overrides: str) -> Study:
        return study(*overrides, primary=primary)

    return composed


@pytest.fixture(scope="session")
def of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of the tests, which has each worker's own folder in it."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def made_once(of_all_workers: Path) -> Callable[[str, Callable[[Path], object]], Path]:
    """`made_once("wheel", make)`: a folder that `make` fills for all workers. Never changed afterwards."""

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder = of_all_workers / name
        with FileLock(f"{folder}.lock"):  # who comes second waits for who makes it, and then finds it
            if not (whole := folder.with_suffix(".whole")).exists():
                folder.mkdir()
                make(folder)
                whole.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def tiny(made_once: Callable[..., Path]) -> Path:
    """A randomly initialised model of two layers, in float32. Never changed."""
    return made_once("tiny", tiny_model)


@pytest.fixture(scope="session")
def other_tiny(made_once: Callable[..., Path]) -> Path:
    """Another model of the same shape. Never changed."""
    return made_once("other-tiny", partial(tiny_model, seed=1))


@pytest.fixture(scope="session")
def starter(of_all_workers: Path, compose_study: Callable[..., Study]) -> Path:
    """The directory of `dataset=starter`, built once for all workers (about half a minute). Never changed."""
    from monitorbench.corpus.build import ensure

    # Who comes second waits for who builds, and then finds it.
    return ensure(compose_study("build", f"paths.data={of_all_workers / 'starter'}"))
