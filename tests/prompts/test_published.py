"""A benchmark's own prompts are asked word for word, or refused in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed import seal

from monitorbench.config.base import UserError
from monitorbench.config.study import Prompt, PromptKind, Study
from monitorbench.prompts.parse import parse
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.wording import PromptWording, published_prompt
from monitorbench.records import Label, Sample

Maker = Callable[..., Sample]
KINDS = ("direct", "evidence")


@pytest.fixture(scope="module")
def prompts(compose_study: Callable[..., Study]) -> dict[str, Prompt]:
    """The prompts that ship, by name."""
    names = [f"{kind}{more}" for kind in KINDS for more in ("", "_few_shot")]
    return {name: compose_study("evaluate", f"prompt={name}").prompt for name in names}


def release(folder: Path, **texts: str) -> Path:
    """A dataset's directory with these prompts."""
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    for kind, text in texts.items():
        (folder / "prompts" / f"{kind}.txt").write_text(text, encoding="utf-8")
    seal(folder)
    return folder


def test_a_dataset_without_prompts_is_asked_with_ours(prompts: dict[str, Prompt], tmp_path: Path):
    """The starter brings none; nor is the evidence prompt to be used where the direct one is asked for."""
    assert published_prompt(release(tmp_path), prompts["direct"]) is prompts["direct"]
    folder = release(tmp_path, evidence="{{ request }} {{ response }}")
    assert published_prompt(folder, prompts["direct"]) is prompts["direct"]
    assert published_prompt(folder, prompts["evidence"]) != prompts["evidence"]


WORDS = st.text(st.sampled_from("ab {}%#\"'\\-\n漢😀")) | st.sampled_from(
    ["{% endraw %}", "{%- endraw -%}", "{% raw %}", "{# no #}", "{{ 7 * 7 }}", '{"label": "yes"}', "{%", "%}"]
)


@given(parts=st.tuples(WORDS, WORDS, WORDS))
def test_it_is_asked_word_for_word(
    tmp_path_factory: pytest.TempPathFactory,
    prompts: dict[str, Prompt],
    make_sample: Maker,
    parts: tuple[str, str, str],
):
    """Numbers under the authors' name must come from the authors' words, braces and all."""
    before, between, after = parts
    text = f"{before}|{{question}}|{between}|{{{{ response }}}}|{after}"
    folder = release(tmp_path_factory.getbasetemp() / "release", direct=text)
    wording = PromptWording(published_prompt(folder, prompts["direct"]))
    sample = make_sample("Ask {{ response }}?", "Say {% endraw %}{question}.")
    request, response = sample.request[0].content, sample.response[0].content
    assert wording.system == ""
    assert wording.user(sample) == f"{before}|{request}|{between}|{response}|{after}"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("request", "answer"),
        ("question", "response"),
        ("prompt", "completion"),
        ("instruction", "trajectory"),
    ],
)
def test_the_names_that_are_documented_are_read(
    prompts: dict[str, Prompt], make_sample: Maker, tmp_path: Path, name: str, other: str
):
    """A placeholder that is not filled asks the monitor about the words `{trajectory}`."""
    folder = release(tmp_path, direct=f"Q: {{{{{name}}}}}\nA: {{ {other} }}")
    user = PromptWording(published_prompt(folder, prompts["direct"])).user(make_sample("Hi?", "Ho."))
    assert user == "Q: Hi?\nA: Ho."


@pytest.mark.parametrize("text", ["", "Is it bad?", "{{ request }} only", "{answer} only", "{req} {resp}"])
def test_one_that_shows_half_of_what_is_judged_is_refused(
    prompts: dict[str, Prompt], tmp_path: Path, text: str
):
    """Judged without the request, or without the response, every verdict would be worth nothing."""
    folder = release(tmp_path, direct=text)
    with pytest.raises(UserError, match=r"direct\.txt: .*expected \{\{ request \}\} and") as caught:
        published_prompt(folder, prompts["direct"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_shot_prompt_is_refused(prompts: dict[str, Prompt], tmp_path: Path, kind: str):
    """It would be reported as few-shot and show no example."""
    folder = release(tmp_path, **{kind: "{{ request }} {{ response }}"})
    with pytest.raises(UserError, match=rf"{kind}\.txt: .*not prompt={kind}_few_shot") as caught:
        published_prompt(folder, prompts[f"{kind}_few_shot"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_its_answers_are_read_as_ours_are(
    prompts: dict[str, Prompt], make_sample: Maker, tokenizer: Any, tmp_path: Path, kind: str
):
    """Without the opening brace written for it, a monitor begins with one, and that is no label."""
    ours = prompts[kind]
    published = published_prompt(release(tmp_path, **{kind: "{question} {answer}"}), ours)
    kept = {"kind", "prefill", "label_words", "max_new_tokens", "fuzzy_ratio", "too_long"}
    assert published.model_dump(include=kept) == ours.model_dump(include=kept)
    assert published.name == f"{kind}-published"
    renderer = Renderer(published, tokenizer)
    assert tokenizer.decode(renderer.render(make_sample())).endswith(ours.prefill)
    text = "yes" if ours.kind is PromptKind.DIRECT else 'yes", "quotes": []}'
    answer = parse(published, renderer.label_tokens, tuple(tokenizer(text).input_ids), text, "stop")
    assert answer.label is Label.MISBEHAVIOR
