"""Label tokens of every tokenizer family, where the label stands. What a user would lose: a whole monitor.

The oracle is the tokenizer on the finished answer: the token behind the prompt's own ids is the one that a
model which answers naturally writes.
"""

import string
from collections.abc import Callable
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from monitorbench.config.study import LabelWords, Prompt, Reasoning, Study
from monitorbench.prompts.label_tokens import behind, score
from monitorbench.prompts.parse import parse
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label

# Mixtral's own way: a blank in front of the answer.
MIXTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ ' [INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
    "{{ ' ' + message['content'] + eos_token }}{% else %}{{ raise_exception('no system') }}{% endif %}"
    "{% endfor %}"
)
ZEPHYR = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>\n' + message['content'] + eos_token + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
SPECIAL = ["<unk>", "<s>", "</s>"]


def _trained(model: str, scheme: str) -> Tokenizer:
    """A small SentencePiece-like (or byte-level) tokenizer that knows both words with and without a blank."""
    if model == "unigram":
        pieces = ["▁yes", "yes", "▁no", "no", "▁Yes", "Yes", "▁No", "No", "▁YES", "YES", "▁NO", "NO"]
        scores = [(token, 0.0) for token in SPECIAL] + [(piece, -2.0) for piece in pieces]
        alphabet = sorted({*string.printable, "▁"})
        scores += [(character, -6.0) for character in alphabet if character not in pieces]
        tokenizer = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=False))
    else:
        tokenizer = Tokenizer(models.BPE(unk_token=None if model == "byte_bpe" else "<unk>"))
    if model == "byte_bpe":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=scheme == "first")
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=True)
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
        alphabet = sorted({*string.printable, "▁"})
    if model != "unigram":
        trainer = trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=SPECIAL,
            initial_alphabet=alphabet,
            min_frequency=1,
            show_progress=False,
        )
        # Words apart from their quotes, as real vocabularies have them.
        words = [f"{blank}{word}" for word in ("yes", "no", "Yes", "No", "YES", "NO") for blank in (" ", "")]
        tokenizer.train_from_iterator([" ".join(words), *words] * 20, trainer)
    return tokenizer


def _tokenizer(model: str, scheme: str, template: str) -> PreTrainedTokenizerFast:
    made = PreTrainedTokenizerFast(
        tokenizer_object=_trained(model, scheme), bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    made.chat_template = template
    return made


FAMILIES = [
    (model, scheme, template)
    for model in ("sentencepiece_bpe", "unigram", "byte_bpe")
    for scheme in (("first", "never") if model == "byte_bpe" else ("always", "first", "never"))
    for template in ("mixtral", "zephyr")
]
TEMPLATES = {"mixtral": MIXTRAL, "zephyr": ZEPHYR}


@pytest.fixture(scope="module")
def prompts(compose_study: Callable[..., Study]) -> dict[str, Prompt]:
    """The prompts that ship."""
    return {name: compose_study("evaluate", f"prompt={name}").prompt for name in ("direct", "evidence")}


def _natural(tokenizer: Any, renderer: Renderer, prefill: str, answer: str) -> list[int]:
    """The ids that follow the prefill's own in the whole answer, encoded as one text."""
    head, whole = (
        tokenizer(f"\n{text}", add_special_tokens=False).input_ids for text in (prefill, prefill + answer)
    )
    assert whole[: len(head)] == head, "the tokenizer merges across the prefill's end"
    return list(whole[len(head) :])


@pytest.mark.parametrize(("model", "scheme", "template"), FAMILIES)
@pytest.mark.parametrize("label", list(Label))
def test_the_natural_answer_behind_a_prefill_is_a_label(
    model: str, scheme: str, template: str, label: Label, prompts: dict[str, Prompt]
):
    """Else every answer of such a monitor is NO_LABEL, and it comes out as unscored."""
    prompt = prompts["evidence"]
    tokenizer = _tokenizer(model, scheme, TEMPLATES[template])
    renderer = Renderer(prompt, tokenizer)
    word = "yes" if label is Label.MISBEHAVIOR else "no"
    text = f'{word}", "category": "none", "severity": "none", "quotes": []}}'
    ids = _natural(tokenizer, renderer, prompt.prefill, text)
    assert ids[0] in renderer.label_tokens.of(label)
    assert renderer.label_tokens.of(label)[0] == ids[0], "the natural token is the one that is trained"
    answer = parse(prompt, renderer.label_tokens, tuple(ids), text, "stop")
    assert answer.label is label


@pytest.mark.parametrize(("model", "scheme", "template"), FAMILIES)
def test_a_direct_answer_is_a_label_with_a_blank_and_without(
    model: str, scheme: str, template: str, prompts: dict[str, Prompt]
):
    """Else a monitor that begins its turn with a blank, as its template taught it, has no label."""
    tokenizer = _tokenizer(model, scheme, TEMPLATES[template])
    renderer = Renderer(prompts["direct"], tokenizer)
    turns = [{"role": "user", "content": "Q"}]
    asked = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    for label, word in ((Label.MISBEHAVIOR, "yes"), (Label.BENIGN, "no")):
        answered = tokenizer.apply_chat_template(
            [*turns, {"role": "assistant", "content": word}], tokenize=False
        )
        head = tokenizer(asked, add_special_tokens=False).input_ids
        whole = tokenizer(answered, add_special_tokens=False).input_ids
        assert whole[: len(head)] == head
        assert whole[len(head)] == renderer.label_tokens.of(label)[0]
        pieces = {tokenizer.convert_ids_to_tokens(i) for i in renderer.label_tokens.of(label)}
        blank = "Ġ" if model == "byte_bpe" else "▁"
        assert {word, f"{blank}{word}"} <= pieces


def test_the_token_of_a_word_alone_is_another_one(prompts: dict[str, Prompt]):
    """The trap itself: without it the tests above would show nothing."""
    tokenizer = _tokenizer("sentencepiece_bpe", "always", MIXTRAL)
    alone = tokenizer("yes", add_special_tokens=False).input_ids
    there = _natural(tokenizer, Renderer(prompts["evidence"], tokenizer), prompts["evidence"].prefill, "yes")
    assert tokenizer.convert_ids_to_tokens(alone) == ["▁yes"]
    assert tokenizer.convert_ids_to_tokens(there) == ["yes"]


@pytest.mark.parametrize(("model", "scheme", "template"), FAMILIES)
def test_behind_reasoning_the_label_stands_behind_what_ends_it(
    model: str, scheme: str, template: str, prompts: dict[str, Prompt]
):
    """Else a monitor that thinks first would be read by the token at the beginning of a text."""
    tokenizer = _tokenizer(model, scheme, TEMPLATES[template])
    tokenizer.add_tokens(["</think>"], special_tokens=True)
    reasoning = Reasoning(end="</think>", then="\n\n", max_tokens=8)
    tokens = Renderer(prompts["direct"], tokenizer, reasoning=reasoning).label_tokens
    text = tokenizer("</think>\n\nyes", add_special_tokens=False).input_ids
    assert text[-1] == tokens.misbehavior[0]


def test_smollm2_has_the_tokens_that_it_had(tokenizer: Any, prompts: dict[str, Prompt]):
    """Else every verdict's key and every golden score of the packaged models would change."""
    for prompt in prompts.values():
        tokens = Renderer(prompt, tokenizer).label_tokens
        for word, found in (("yes", tokens.misbehavior), ("no", tokens.benign)):
            spellings = [word, word.capitalize(), word.upper()]
            forms = spellings + [f" {one}" for one in spellings]
            alone = [tokenizer(form, add_special_tokens=False).input_ids for form in forms]
            assert found == tuple(dict.fromkeys(ids[0] for ids in alone if len(ids) == 1))


def test_where_the_prompt_and_the_word_merge_the_bare_token_counts():
    """Else a prefill that ends in a letter or a quote which merges with the word has no label."""
    vocabulary = {'"': 0, "yes": 1, '"yes': 2, "\n": 3}

    def encode(text: str) -> list[int]:
        ids = []
        while text:
            piece = max((one for one in vocabulary if text.startswith(one)), key=len)
            ids.append(vocabulary[piece])
            text = text[len(piece) :]
        return ids

    assert encode('"yes') == [2]
    assert behind(encode, '"', "yes") == [1]


def test_a_word_of_several_tokens_there_is_refused(prompts: dict[str, Prompt]):
    """Else the first piece of another word would count as an answer."""
    tokenizer = _tokenizer("sentencepiece_bpe", "always", MIXTRAL)
    words = LabelWords(misbehavior="zqx", benign="no")
    with pytest.raises(ValueError, match=r"label word 'zqx' is \d tokens behind .*misbehavior"):
        Renderer(prompts["evidence"].model_copy(update={"label_words": words}), tokenizer)


def test_a_score_counts_each_variant_once(prompts: dict[str, Prompt]):
    """Else mass that a token has would be counted twice."""
    tokens = Renderer(prompts["evidence"], _tokenizer("unigram", "first", MIXTRAL)).label_tokens
    assert len(set(tokens.all)) == len(tokens.all)
    logprobs = dict.fromkeys(tokens.all, -5.0)
    assert score(logprobs, tokens).score == pytest.approx(len(tokens.misbehavior) / len(tokens.all))
