"""Pooled hidden states are transformers' own, and what is on disk is what was extracted."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_models import tiny_model
from transformers import AutoModelForCausalLM

from monitorbench.config.base import UserError
from monitorbench.config.study import TransformersEngine
from monitorbench.engines.hidden_states import HiddenStates, layer_numbers
from monitorbench.engines.stored.states import ROWS, STATES, open_states

POSITIONS = ("last", "mean", "max")
ENGINE = TransformersEngine(kind="transformers", batch_size=1, dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def test_they_are_what_transformers_puts_out(tiny: Path):
    """If it failed: a probe would read another layer, or other tokens, than its run says."""
    ids, (start, end) = [1, 40, 500, 77, 900, 12, 2], (2, 5)
    reads = HiddenStates(ENGINE, tiny, (1, 2), POSITIONS)
    found = reads.pooled(ids, (start, end)).states
    reads.close()
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()
    with torch.inference_mode():
        _, first_1TH, last_1TH = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    expected_TH = first_1TH[0]
    expected = torch.stack([expected_TH[-1], expected_TH[start:end].mean(0), expected_TH[start:end].amax(0)])
    assert np.allclose(found[0], expected.numpy(), atol=2e-3)
    # transformers gives the last layer behind the final norm; here it is in front of it.
    normed = model.model.norm(torch.from_numpy(found[1, 0].astype(np.float32)))
    assert np.allclose(normed.detach().numpy(), last_1TH[0, -1].numpy(), atol=2e-2)


def test_a_model_is_cut_behind_the_last_layer_that_is_read(tiny: Path):
    """If it failed: a probe on the first layer would pay for all of them, or read other numbers."""
    shallow, whole = (HiddenStates(ENGINE, tiny, layers, POSITIONS) for layers in ((1,), (1, 2)))
    assert len(shallow._decoder.layers) == 1
    a, b = (reads.pooled([1, 5, 9, 2], (1, 3)).states[0] for reads in (shallow, whole))
    assert np.array_equal(a, b)


@given(depth=st.integers(1, 100), shares=st.lists(st.floats(0.001, 1), min_size=1, max_size=8))
def test_layers_are_in_the_model_and_each_there_once(depth: int, shares: list[float]):
    """If it failed: a share of the depth would name no layer, or two columns be one."""
    found = layer_numbers(depth, shares)
    assert list(found) == sorted(set(found))
    assert 1 <= found[0] <= found[-1] <= depth


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(cut=st.integers(0, 5 * 24), torn=st.integers(0, 40), at=st.integers(0, 10_000))
def test_what_was_interrupted_goes_on_to_the_same_bytes(tmp_path: Path, cut: int, torn: int, at: int):
    """If it failed: states after a kill would be another run's, or the wrong sample's."""
    folder = tmp_path / f"{cut}-{torn}-{at}"
    shape = (2, 2, 3)
    rows = [np.full(shape, number, np.float16) for number in range(5)]
    with open_states(folder / "whole", shape) as store:
        for number, row in enumerate(rows):
            store.append(f"key{number}", row, 0.5)
    whole = {name: (folder / "whole" / name).read_bytes() for name in (STATES, ROWS)}
    # A kill: some states without their line, the last line torn.
    lines = whole[ROWS].splitlines(keepends=True)
    kept = min(cut // 24, 4)
    (folder / "cut").mkdir(parents=True, exist_ok=True)
    (folder / "cut" / ROWS).write_bytes(
        b"".join(lines[:kept]) + lines[kept][: min(torn, len(lines[kept]) - 2)]
    )
    (folder / "cut" / STATES).write_bytes(whole[STATES][: kept * 24 + at % 24])
    with open_states(folder / "cut", shape) as store:
        for number, row in enumerate(rows):
            if f"key{number}" not in store:
                store.append(f"key{number}", row, 0.5)
        assert np.array_equal(store.read([f"key{n}" for n in range(5)]), np.stack(rows))
    assert {name: (folder / "cut" / name).read_bytes() for name in (STATES, ROWS)} == whole


@pytest.mark.parametrize("spoil", [lambda raw: b"\x00\x42" + raw[2:], lambda raw: raw[:-2]])
def test_states_that_changed_on_disk_are_refused(tmp_path: Path, spoil):
    """If it failed: a probe would judge by states that no model put out."""
    with open_states(tmp_path, (1, 1, 4)) as store:
        store.append("a", np.ones((1, 1, 4), np.float16), 0.0)
    file = tmp_path / STATES
    file.write_bytes(spoil(file.read_bytes()))
    with open_states(tmp_path, (1, 1, 4)) as store, pytest.raises(UserError, match="not as it was written"):
        store.read(["a"])
