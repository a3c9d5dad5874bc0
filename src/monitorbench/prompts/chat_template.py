"""A tokenizer's chat template, rendered alike on any day."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

_DAYS = (datetime.date(2001, 2, 3), datetime.date(2034, 11, 12))
"""Two days that differ in year, month and day, however a template writes them."""


class ChangingTemplate(ValueError):
    """A chat template that writes something of its own which is another tomorrow."""


def templated(
    tokenizer: Any,
    turns: Sequence[Mapping[str, str]],
    *,
    date: datetime.date | None = None,
    add_generation_prompt: bool = False,
) -> str:
    """The text of a chat, `date` being the day that a template with `strftime_now` writes.

    Raises `ChangingTemplate` where the template writes the day and `date` is None, or writes anything else
    that differs from one call to the next; jinja's `TemplateError` for turns that it doesn't take.
    """
    first, second = (
        _rendered(tokenizer, turns, date or day, add_generation_prompt=add_generation_prompt) for day in _DAYS
    )
    if first == second:
        return first
    if date is not None:
        raise ChangingTemplate("the chat template writes something else each time; expected another template")
    raise ChangingTemplate(
        "the chat template writes the day, so that a score would be another tomorrow; expected "
        "monitor.template_date=YYYY-MM-DD"
    )


def _rendered(
    tokenizer: Any, turns: Sequence[Mapping[str, str]], day: datetime.date, *, add_generation_prompt: bool
) -> str:
    midnight = datetime.datetime.combine(day, datetime.time())
    # An argument of this name hides the function of Transformers that asks the clock.
    text: str = tokenizer.apply_chat_template(
        [*turns],
        tokenize=False,
        add_generation_prompt=add_generation_prompt,
        strftime_now=midnight.strftime,
    )
    return text
