"""Pooled hidden states are transformers' own, and what is on disk is what was extracted."""

import json
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from drawing import draws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from monitorbench.config.base import UserError
from monitorbench.config.study import TransformersEngine
from monitorbench.config.training import Storage
from monitorbench.engines.protocol import Request
from monitorbench.engines.stored.head import windows
from monitorbench.engines.stored.states import ROWS, STATES, as_stored, open_states
from monitorbench.engines.transformers_engine import HiddenStates, layer_numbers
from monitorbench.runs.files import sealed_line

POSITIONS = ("last", "mean", "max")
ENGINE = TransformersEngine(kind="transformers", batch_size=1, dtype="float32", device="cpu")


def asked(ids: list[int], start: int, end: int) -> Request:
    return Request(token_ids=tuple(ids), response=(start, end))


def test_they_are_what_transformers_puts_out(tiny: Path):
    """If it failed: a probe would read another layer, or other tokens, than its run says."""
    ids, (start, end) = [1, 40, 500, 77, 900, 12, 2], (2, 5)
    reads = HiddenStates(ENGINE, tiny, (1, 2), POSITIONS, None)
    (found,) = reads.states(asked(ids, start, end))
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
    shallow, whole = (HiddenStates(ENGINE, tiny, layers, POSITIONS, None) for layers in ((1,), (1, 2)))
    assert len(shallow._decoder.layers) == 1
    a, b = (reads.states(asked([1, 5, 9, 2], 1, 3))[:, 0] for reads in (shallow, whole))
    assert np.array_equal(a, b)


@given(depth=st.integers(1, 100), shares=st.lists(st.floats(0.001, 1), min_size=1, max_size=8))
def test_layers_are_in_the_model_and_each_there_once(depth: int, shares: list[float]):
    """If it failed: a share of the depth would name no layer, or two columns be one."""
    found = layer_numbers(depth, shares)
    assert list(found) == sorted(set(found))
    assert 1 <= found[0] <= found[-1] <= depth


def test_windows_and_tokens_are_of_the_response(tiny: Path):
    """If it failed: the suspicion of a window would be of other tokens than it says."""
    ids, (start, end) = [1, 40, 500, 77, 900, 12, 2, 9, 31], (2, 7)
    by_token = HiddenStates(ENGINE, tiny, (1, 2), ("tokens",), None).states(asked(ids, start, end))
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()
    with torch.inference_mode():
        _, first_1TH, _ = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    assert by_token.shape == (5, 2, 1, 32)
    assert np.allclose(by_token[:, 0, 0], first_1TH[0, start:end].numpy(), atol=2e-3)
    pooled = HiddenStates(ENGINE, tiny, (1, 2), ("mean", "max"), 2).states(asked(ids, start, end))
    assert windows(5, 2) == [(0, 1), (1, 3), (3, 5)]
    for window, (first, behind) in zip(pooled, windows(5, 2), strict=True):
        tokens = by_token[first:behind, :, 0].astype(np.float32)
        assert np.allclose(window[:, 0], tokens.mean(0), atol=2e-3)
        assert np.array_equal(window[:, 1], tokens.max(0).astype(np.float16))


@given(n_tokens=st.integers(1, 5000), longest=st.none() | st.integers(1, 600))
def test_windows_cover_a_response_once(n_tokens: int, longest: int | None):
    """If it failed: a part of a long response would not be read, or a rest of a token be judged alone."""
    found = windows(n_tokens, longest)
    assert [token for start, end in found for token in range(start, end)] == list(range(n_tokens))
    lengths = {end - start for start, end in found}
    assert max(lengths) - min(lengths) <= 1
    assert len(found) == -(-n_tokens // (longest or n_tokens))


@settings(draws(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    kept=st.integers(0, 4),
    torn=st.integers(0, 40),
    behind=st.integers(0, 200),
    storage=st.sampled_from(("float16", "int8")),
)
def test_what_was_interrupted_goes_on_to_the_same_bytes(
    tmp_path: Path, lengths: list[int], kept: int, torn: int, behind: int, storage: Storage
):
    """If it failed: states after a kill would be another run's, or the wrong sample's."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    shape = (2, 2, 3)
    draw = np.random.default_rng(0)
    prompts = [draw.integers(-127, 128, (n, *shape)).astype(np.float16) for n in lengths]
    for states in prompts:
        states[..., 0] = 127  # so that int8 is exact
    with open_states(folder / "whole", shape, storage) as store:
        for number, states in enumerate(prompts):
            store.append(f"key{number}", states, 0.5)
    names = (STATES[storage], ROWS)
    whole = {name: (folder / "whole" / name).read_bytes() for name in names}
    # A kill: some states without their line, the last line torn.
    lines = whole[ROWS].splitlines(keepends=True)
    kept = min(kept, len(lines) - 1)
    unit = len(whole[STATES[storage]]) // sum(lengths)
    (folder / "cut").mkdir()
    (folder / "cut" / ROWS).write_bytes(
        b"".join(lines[:kept]) + lines[kept][: min(torn, len(lines[kept]) - 2)]
    )
    (folder / "cut" / names[0]).write_bytes(whole[names[0]][: sum(lengths[:kept]) * unit + behind])
    with open_states(folder / "cut", shape, storage) as store:
        for number, states in enumerate(prompts):
            if f"key{number}" not in store:
                store.append(f"key{number}", states, 0.5)
        for number, states in enumerate(prompts):
            assert np.array_equal(store.read(f"key{number}"), states)
    assert {name: (folder / "cut" / name).read_bytes() for name in names} == whole


def test_int8_is_within_half_a_step_of_its_vector(tmp_path: Path):
    """If it failed: half of the disk would cost more than rounding, or a large vector drown a small one."""
    states = np.random.default_rng(0).normal(size=(3, 2, 1, 64)).astype(np.float16)
    states[1, 0] *= 1000
    states[2, 1] = 0
    with open_states(tmp_path, (2, 1, 64), "int8") as store:
        store.append("a", states, 0.0)
        found = store.read("a").astype(np.float64)
    step = np.abs(states.astype(np.float64)).max(-1, keepdims=True) / 127
    assert np.all(np.abs(found - states) <= 0.5 * step + 1e-3 * np.abs(states))


def test_states_of_a_folder_from_before_windows_are_read(tmp_path: Path):
    """If it failed: an extraction of hours would be refused by a newer version."""
    states = np.arange(4, dtype=np.float16).reshape(1, 1, 4)
    (tmp_path / STATES["float16"]).write_bytes(states.tobytes())
    row = {"key": "a", "row": 0, "crc32": zlib.crc32(states.tobytes()), "seconds": 0.1}
    (tmp_path / ROWS).write_bytes(sealed_line(json.dumps(row, separators=(",", ":"))) + b"\n")
    with open_states(tmp_path, (1, 1, 4), "float16") as store:
        assert np.array_equal(store.read("a"), states[None])
        store.append("b", states[None] + 1, 0.1)
        assert np.array_equal(store.read("b"), states[None] + 1)


@pytest.mark.parametrize("spoil", [lambda raw: b"\x00\x42" + raw[2:], lambda raw: raw[:-2]])
def test_states_that_changed_on_disk_are_refused(tmp_path: Path, spoil):
    """If it failed: a probe would judge by states that no model put out."""
    with open_states(tmp_path, (1, 1, 4), "float16") as store:
        store.append("a", np.ones((1, 1, 1, 4), np.float16), 0.0)
    file = tmp_path / STATES["float16"]
    file.write_bytes(spoil(file.read_bytes()))
    with (
        open_states(tmp_path, (1, 1, 4), "float16") as store,
        pytest.raises(UserError, match="not as it was"),
    ):
        store.read("a")


@pytest.mark.parametrize("storage", ["float16", "int8"])
def test_states_that_skip_the_disk_are_those_that_come_from_it(tmp_path: Path, storage: Storage):
    """A head beside its model would give another score than alone, under one verdict's key."""
    states = np.random.default_rng(0).normal(size=(3, 1, 1, 64)).astype(np.float16)
    with open_states(tmp_path, (1, 1, 64), storage) as store:
        store.append("a", states, 0.0)
        assert np.array_equal(as_stored(states[:, 0, 0], storage), store.read("a")[:, 0, 0])
