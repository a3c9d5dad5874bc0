"""Prose in other words and other letters: what is said stays, and so does what has to be spelled as it is."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_things import KEPT, WORDS

from monitorbench.records import Sample
from monitorbench.stress.changes.change import SampleChange, changed, family
from monitorbench.stress.changes.prose import UNSEEN
from monitorbench.stress.stage import CHANGES

OF_PROSE = [
    one
    for one in CHANGES
    if isinstance(one, SampleChange) and family(one.name) in ("paraphrase", "lookalikes")
]

SAID = (
    "I do not think so.",
    "However, it isn't done.",
    "They can't open it until we are there.",
    "In order to help, I won't start.",
)


@given(
    parts=st.lists(st.sampled_from((*KEPT, *WORDS, *SAID)), min_size=1, max_size=8), seed=st.integers(0, 3)
)
@pytest.mark.parametrize("change", OF_PROSE, ids=lambda one: one.name)
def test_what_is_spelled_for_machines_or_quoted_stays_byte_for_byte(
    change: SampleChange, parts: Sequence[str], seed: int, make_sample: Callable[..., Sample]
):
    """If it failed: a benign answer would show a phishing address, and a report another path."""
    text = " ".join(parts)
    made = changed(change, make_sample("Do it.", text), seed)
    if made is None:
        return
    after = made.response[0].content
    at = 0
    for part in parts:
        if part in KEPT:
            assert part in after[at:], part
            at = after.index(part, at) + len(part)


@given(text=st.text(alphabet="ae\u0301\u0308\u0915\u094d\u0937\u1112\u1161\u11ab\u200d नि한n", max_size=20))
def test_nothing_is_put_between_a_letter_and_its_marks(text: str, make_sample: Callable[..., Sample]):
    """If it failed: accents and syllables would be drawn apart, and the text be another to a reader."""
    (unseen,) = (one for one in OF_PROSE if one.name == "lookalikes.unseen")
    made = changed(unseen, make_sample("Do it.", text or "a"), 0)
    after = made.response[0].content if made else ""
    assert after.replace(UNSEEN, "") == (text if made else "")
    for mark in "\u0301\u0308\u094d\u1161\u11ab\u200d\u093f":
        assert f"{UNSEEN}{mark}" not in after


STAYS = (
    "He is right, not because it is true.",
    "However long it takes, it is right.",
    "It is an additional file, a sufficient condition and a vain attempt to help.",
    "She did as well as him, nearly approximately often.",
    "What you are is clear, and so is who they are to us.",
    "It is better than you are now.",
    "I know that you are too.",
    "Don't people like it? Why didn't Anna come?",
    "Isn't Anna kind!",
    "I wonder why didn't Anna come.",
    "I CAN'T AND WILL NOT. I AM OUT.",
    'He wrote "I do not know, however, I can\'t say" to me.',
    "Let it be said in addition to the rest, a lot of it regarding us.",
    "It's been fun, and that's got him going.",
)
SAYS = {
    "I do not know. You are right.": ("contracted", "I don't know. You're right."),
    "Didn't. I can’t, and I'm sure they won't open it.": (
        "expanded",
        "Didn't. I cannot, and I am sure they will not open it.",
    ),
    "Don't open it; that's the key.": ("expanded", "Do not open it; that is the key."),
    "However, it waits, for example, until noon.": (
        "phrases",
        "Nevertheless, it waits, for instance, till noon.",
    ),
}


@pytest.mark.parametrize("text", STAYS)
def test_a_rule_does_not_reach_where_it_would_say_something_else(
    text: str, make_sample: Callable[..., Sample]
):
    """If it failed: the label would be of another sentence, or a monitor be tried on broken English."""
    for one in OF_PROSE:
        if family(one.name) == "paraphrase":
            assert changed(one, make_sample("Do it.", text), 0) is None, one.name


@pytest.mark.parametrize("text", SAYS)
def test_a_rule_says_the_same_in_other_words(text: str, make_sample: Callable[..., Sample]):
    """If it failed: nothing would be changed, and every monitor be cleared."""
    name, other = SAYS[text]
    (one,) = (one for one in OF_PROSE if one.name == f"paraphrase.{name}")
    made = changed(one, make_sample("Do it.", text), 0)
    assert made is not None
    assert made.response[0].content == other
