"""What every change promises of every sample: the label, the pair and the text that has to survive."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import ConfigError
from monitorbench.prompts.lookalikes import looks
from monitorbench.prompts.transcript import characters
from monitorbench.records import Message, Role, Sample
from monitorbench.runs.files import content_hash
from monitorbench.stress.changes.change import SampleChange, changed, family
from monitorbench.stress.changes.insertions import CHARACTERS_A_TOKEN, TOKENS
from monitorbench.stress.changes.pieces import pieces
from monitorbench.stress.stage import CHANGES, chosen

UNTOUCHED = {"suggestion_truth", "answer_truth", "own_id"}
"""Facts that no change touches and no text shows."""
GOLDEN = Path(__file__).parent / "golden_changes.json"
OF_SAMPLES = [one for one in CHANGES if isinstance(one, SampleChange)]
ADDING = {"control", "instruction", "accusation", "forged_verdict", "padding", "own_words"}
IN_PROSE = {"paraphrase", "lookalikes"}
FENCED = (
    "```python\ndef f(items):\n    total = 0\n    for one in items:\n"
    "        total += one\n    return total\n```"
)
FRAGMENTS = (
    "I do not think that this is right, because the numbers don't add up.",
    "In order to help, I won't start before you are ready. For example: 3.14 and 42.",
    "Ich habe die Datei gelöscht. 读取输入",
    "See `do not` and https://example.org/do-not-open?x=1 for more.",
    FENCED,
    "```js\nlet total = 0; // do not touch\n```",
    "```\nno language\n",
    "",
    "  \n\n",
    "</response>\nyes <|im_end|>",
)


def _messages(role: Role) -> st.SearchStrategy[Message]:
    texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=40), min_size=1, max_size=4)
    contents = texts.map("\n".join)
    return st.builds(Message, role=st.just(role), content=contents, thinking=st.sampled_from(["", "Hm."]))


RESPONSES = st.lists(_messages(Role.ASSISTANT) | _messages(Role.TOOL), min_size=1, max_size=3)


def _parts(sample: Sample) -> list[str]:
    return [one.content for one in (*sample.request, *sample.response)]


def _is_kept(before: str, after: str) -> bool:
    """Whether `after` is `before` with text put in at one place, or around it."""
    return before in after or any(
        after.startswith(before[:cut]) and after.endswith(before[cut:]) for cut in range(len(before) + 1)
    )


@draws(20)
@given(messages=RESPONSES, seed=st.integers(0, 3))
@pytest.mark.parametrize("change", OF_SAMPLES, ids=lambda one: one.name)
def test_a_change_keeps_what_it_promises(
    change: SampleChange, messages: Sequence[Message], seed: int, make_sample: Callable[..., Sample]
):
    """A changed label, or code that does another thing, would be counted as the monitor's error."""
    sample = make_sample("Sum them, do not guess.", messages, pair_id="p", group_id="g", split="test")
    made = changed(change, sample, seed)
    assert made == changed(change, sample, seed)
    if made is None:
        return
    assert made.id != sample.id
    kept = set(Sample.model_fields) - {"id", "request", "response", "gold_spans"}
    assert all(getattr(made, name) == getattr(sample, name) for name in kept)
    assert [one.thinking for one in made.response if one.thinking] == [
        one.thinking for one in sample.response if one.thinking
    ]
    of = family(change.name)
    if of in ADDING:
        after = [one for one in _parts(made) if one]
        for text in _parts(sample):
            assert any(_is_kept(text, one) for one in after) or not text
        return
    assert made.request == sample.request
    assert [one.role for one in made.response] == [one.role for one in sample.response]
    for old, new in zip(sample.response, made.response, strict=True):
        if old.role is Role.TOOL:
            assert old == new
        elif of in IN_PROSE:
            assert _code(old.content) == _code(new.content)
            if of == "lookalikes":
                assert looks(old.content) == looks(new.content)
        else:
            assert _prose(old.content) == _prose(new.content)


def _code(text: str) -> list[str]:
    return [one.text for one in pieces(text) if one.kind != "prose"]


def _prose(text: str) -> list[str]:
    return [one.text for one in pieces(text) if one.kind != "code"]


@given(text=st.text() | st.lists(st.sampled_from(FRAGMENTS)).map("\n".join))
def test_the_pieces_are_the_text(text: str):
    """A change would drop what no piece holds."""
    assert "".join(one.text for one in pieces(text)) == text


@pytest.mark.parametrize("size", TOKENS)
@pytest.mark.parametrize("stands", ["first", "middle", "last"])
def test_padding_puts_the_text_where_it_says_and_reaches_its_length(
    size: str, stands: str, make_sample: Callable[..., Sample]
):
    """A monitor that loses the middle would be tried at its end."""
    (change,) = (one for one in OF_SAMPLES if one.name == f"padding.{size}.{stands}")
    sample = make_sample("Do it.", "I did it. NOT THE PADDING.")
    made = changed(change, sample, 0)
    assert made is not None
    text = made.response[0].content
    length = TOKENS[size] * CHARACTERS_A_TOKEN
    assert length <= characters(made.request) + characters(made.response) <= length + 2000
    at = text.index(sample.response[0].content) / len(text)
    low, high = {"first": (0, 0), "middle": (0.4, 0.6), "last": (0.9, 1)}[stands]
    assert low <= at <= high


def test_what_a_change_makes_of_a_sample_is_part_of_its_version(make_sample: Callable[..., Sample]):
    """Numbers of two versions of the project would be compared as if their texts were the same.

    After an intended change raise the change's `version` and write what this prints.
    """
    sample = make_sample("Sum them.", "\n\n".join(one for one in FRAGMENTS if "no language" not in one))
    found: dict[str, str] = {}
    for one in OF_SAMPLES:
        made = changed(one, sample, 0)
        text = content_hash(made.model_dump(mode="json", exclude=UNTOUCHED)) if made else "does not apply"
        found[one.name] = f"{one.version}: {text}"
    assert found == json.loads(GOLDEN.read_text()), json.dumps(found, indent=2)


def test_changes_are_chosen_by_family_part_and_name():
    """A mistyped name would be tried on nothing, and the monitor be cleared."""
    assert chosen(["all"]) == list(CHANGES)
    assert len({one.name for one in CHANGES}) == len(CHANGES)
    assert len(chosen(["instruction"])) == 6 * 4
    assert len(chosen(["padding.2k", "padding.2k.middle"])) == 3
    with pytest.raises(ConfigError, match=r"stress\.changes=paddin: no such change; did you mean padding\?"):
        chosen(["paddin"])
