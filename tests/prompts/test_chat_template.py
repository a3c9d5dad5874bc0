"""A chat template that writes the day, or chance, into a prompt: pinned or refused."""

import datetime
from typing import Any

import pytest
from small_models import tiny_model
from transformers import AutoTokenizer

from monitorbench.prompts.render import ChangingTemplate, templated

DAY = datetime.date(2025, 8, 5)
TURNS = [{"role": "user", "content": "Why?"}]
PLAIN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
LLAMA = '{% set date = date_string or strftime_now("%d %b %Y") %}Today Date: {{ date }}\n'
CHANCE = "{{ range(90000) | random }} {{ range(90000) | random }}"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return AutoTokenizer.from_pretrained(tiny_model(tmp_path_factory.mktemp("model")))


def of(tokenizer: Any, template: str, date: datetime.date | None = None) -> str:
    tokenizer.chat_template = template
    return templated(tokenizer, TURNS, date=date)


def test_a_template_without_a_date_is_transformers_own(tokenizer: Any):
    """If it failed: every verdict's key would change."""
    tokenizer.chat_template = PLAIN
    whole = tokenizer.apply_chat_template(TURNS, tokenize=False)
    assert of(tokenizer, PLAIN) == of(tokenizer, PLAIN, DAY) == whole


@pytest.mark.parametrize("form", ["%d %b %Y", "%Y-%m-%d", "%Y", "%B", "%A", "%d"])
def test_a_day_is_pinned_or_refused_however_it_is_written(form: str, tokenizer: Any):
    """If it failed: two runs a day apart would share one hash with other scores."""
    template = f'{{{{ strftime_now("{form}") }}}}{PLAIN}'
    with pytest.raises(ChangingTemplate, match=r"monitor\.template_date=YYYY"):
        of(tokenizer, template)
    assert of(tokenizer, template, DAY).startswith(DAY.strftime(form))


def test_llamas_way_of_writing_it_is_pinned(tokenizer: Any):
    """If it failed: the models that people run most would be judged anew each day."""
    assert "Today Date: 05 Aug 2025" in of(tokenizer, LLAMA + PLAIN, DAY)


def test_what_changes_from_call_to_call_is_refused(tokenizer: Any):
    """If it failed: a judge's score of one sample would be another each time, under one identity."""
    for date in (None, DAY):
        with pytest.raises(ChangingTemplate):
            of(tokenizer, CHANCE + PLAIN, date)
