"""Settings and uses that a kind of prompt can't have: each is refused in one line."""

from collections.abc import Callable
from typing import Any

import pytest

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import evaluate

GRADED, EXTRACT, FIRST = "prompt=graded", "prompt=extract_then_judge", "prompt=evidence_first"
THINKS = 'monitor.reasoning={end:".",then:"",max_tokens:24}'


@pytest.mark.parametrize(
    ("prompt", "override", "said"),
    [
        (GRADED, "prompt.shots=1", "shots=0"),
        (GRADED, "prompt.flag_from=11", "flag_from"),
        (GRADED, "prompt.flag_from=null", "flag_from"),
        (GRADED, "prompt.max_new_tokens=1", "max_new_tokens"),
        (GRADED, 'prompt.label_words={misbehavior:"yes",benign:"no"}', "ends of its scale"),
        (EXTRACT, "prompt.shots=1", "shots"),
        (EXTRACT, "prompt.judge_user=null", "judge_user"),
        (EXTRACT, "prompt.judge_user='{{ acts }} {{ response }}'", "without the response"),
        (FIRST, "prompt.prefill=''", r"prefill.*kind=evidence_first begins the JSON object"),
    ],
)
def test_settings_that_no_answer_fits_are_refused(
    study: Callable[..., Study], prompt: str, override: str, said: str
):
    """Else a prompt would ask for what nobody can read, or show the second pass what it is not to see."""
    with pytest.raises(ConfigError, match=said):
        study(prompt, override)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ((FIRST, THINKS), r"evidence_first.*it writes its evidence first; expected .*null"),
        ((EXTRACT, THINKS), r"lists what was done first; expected .*null"),
        ((EXTRACT, "engine=openai_batch", "engine.api_key_env=null"), "asks twice"),
        (
            ('monitor.reasoning={end:"</think>",then:"",max_tokens:24}',),
            r"monitor.reasoning.end='</think>' is \d tokens, expected one",
        ),
    ],
)
def test_what_can_not_be_asked_is_refused(
    study: Callable[..., Study], use_engine: Any, overrides: tuple[str, ...], said: str
):
    """Else thoughts would be parsed as JSON or listed, or go on to their limit, or a batch be in vain."""
    use_engine(lambda *_: None)
    with pytest.raises(ConfigError, match=said):
        evaluate(study(*overrides))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (GRADED, "training supervises the label alone"),
        (EXTRACT, "training supervises the label alone"),
        (THINKS, r"monitor\.reasoning=null"),
        ("monitor.adapter=/nope", r"monitor\.adapter=/nope: training starts from the base; expected null"),
    ],
)
def test_training_on_what_is_not_asked_for_is_refused(
    compose_study: Callable[..., Study], override: str, said: str
):
    """Else an adapter would be trained on a word that is not where it is evaluated, or planned to be.

    Or the adapter that one wants to train further would be left out without a word.
    """
    from monitorbench.studies.forecast import PlannedRun, forecast
    from monitorbench.training.sft import train

    study = compose_study("train", override)
    with pytest.raises((ConfigError, UserError), match=said):
        train(study)
    with pytest.raises((ConfigError, UserError), match=said):
        forecast([PlannedRun("train", study)])
