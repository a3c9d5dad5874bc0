"""A key among the settings is refused, and neither the refusal nor any other error prints it."""

import json

import pytest
from studies import study

from monitorbench.config.base import ConfigError
from monitorbench.config.ending import stop
from monitorbench.config.load import validate
from monitorbench.config.secrets import is_secret_name, without_secrets

KEY = "sk-PLANTED-0123456789abcdef"
ODD = "no-known-form-of-a-key"


def _refused(*overrides: str, primary: str = "evaluate") -> str:
    with pytest.raises(ConfigError) as refusal:
        study("engine=openai_api", *overrides, primary=primary)
    return str(refusal.value)


@pytest.mark.parametrize(
    "setting",
    [
        f"+engine.extra_body.api_key={ODD}",
        f"+engine.extra_body.headers={{Authorization: {ODD}}}",
        f"+engine.extra_body.extra={{list: [{{client-secret: {ODD}}}]}}",
        f"+engine.extra_body.tokens={{access_token: {ODD}}}",
        f"+engine.extra_body.user='Bearer {ODD}'",
        f"+engine.extra_body.note='see {KEY}'",
        f"+monitor.chat_template_kwargs={{hf_token: {ODD}}}",
        f"engine.model={KEY}",
        f"engine.api_key_env={KEY}",
        f"tracking.project={KEY}",
        f"engine.base_url=https://me:{ODD}@host/v1",
        f"engine.base_url='https://host/v1?api_key={ODD}'",
        f"+engine.headers={{x-api-key: {KEY}}}",
        f"+engine.api_key={KEY}",
    ],
)
def test_a_key_among_the_settings_is_refused(setting: str):
    """If it failed: config.json, which is shared with the run, would hold somebody's key."""
    text = _refused(setting)
    assert ODD not in text
    assert KEY not in text
    assert text.startswith(setting.lstrip("+").partition("=")[0])
    assert "api_key_env" in text or "unknown key" in text


def test_the_value_of_a_secret_variable_is_refused_anywhere(monkeypatch: pytest.MonkeyPatch):
    """If it failed: `engine.extra_body.user=${oc.env:MY_API_KEY}` would write the key out."""
    monkeypatch.setenv("MY_API_KEY", ODD)
    for setting in ("+engine.extra_body.user=${oc.env:MY_API_KEY}", f"tracking.project=mine-{ODD}"):
        text = _refused(setting)
        assert ODD not in text
        assert "written to files" in text


@pytest.mark.parametrize(
    "setting",
    [
        "+engine.extra_body={reasoning_effort: low, max_tokens_details: 3, stop_token_ids: [1, 2]}",
        "+engine.extra_body={prompt_cache_key: study-1, cache_salt: x, user: me, eos_token: '</s>'}",
        "+monitor.chat_template_kwargs={enable_thinking: false, skip_special_tokens: yes}",
        "engine.model=sk-learn-baseline",
    ],
)
def test_what_only_sounds_like_a_key_is_taken(setting: str):
    """If it failed: a request's ordinary fields could not be set."""
    study("engine=openai_api", setting, primary="evaluate")


def test_a_frozen_study_is_asked_as_well():
    """If it failed: a file that somebody edited would bring the key in."""
    tree = study("engine=openai_api", primary="evaluate").model_dump(mode="json", by_alias=True)
    tree["engine"]["extra_body"] = {"headers": {"Authorization": ODD}}
    with pytest.raises(ConfigError, match=r"engine\.extra_body\.headers\.Authorization=\(hidden\)"):
        validate(json.dumps(tree))


@pytest.mark.parametrize(
    "message",
    [
        f"engine.extra_body.api_key={ODD}: unknown key",
        f"engine.api_key_env={ODD}: expected a name",
        f'engine.headers={{"Authorization": "{ODD}"}}: unknown key',
        f"+engine.headers={{user:me,Authorization:{ODD}}}: not an override",
        f"engine.api_key=<{ODD}>: its value needs quotes; expected 'engine.api_key=\"<{ODD}>\"'",
        f"engine.base_url=https://me:{ODD}@host/v1?sig={ODD}: expected a URL",
        f"answered 401: Incorrect API key provided: {KEY}.",
        f"Authorization: Bearer {ODD}",
    ],
)
def test_no_error_prints_a_key(message: str, capsys: pytest.CaptureFixture[str]):
    """If it failed: a cluster's log, which many can read, would have the key of a mistyped command."""
    with pytest.raises(SystemExit):
        stop(message, 2)
    printed = capsys.readouterr().err
    assert ODD not in printed
    assert KEY not in printed
    assert "(hidden)" in printed


def test_messages_without_a_key_stay_as_they_are():
    """If it failed: an error about max_tokens would hide the number that was wrong."""
    for message in (
        "prompt.max_new_tokens=0: expected at least 1",
        "engine.api_key_env=OPENAI_API_KEY: expected a variable",
        "http://host/v1, model m, key: none (api_key_env=null): nothing answers there",
        "https://host/v1 needs a key: set the environment variable OPENAI_API_KEY",
        "monitor=sk-learn: no such option; did you mean monitor=own?",
    ):
        assert without_secrets(message) == message


def test_names_of_secrets():
    """If it failed: a key's field would pass, or a count of tokens be refused."""
    secret = (
        "api_key",
        "X-API-Key",
        "apikey",
        "HF_TOKEN",
        "accessToken",
        "password",
        "AWS_SECRET_ACCESS_KEY",
    )
    harmless = (
        "max_tokens",
        "tokenizer",
        "eos_token",
        "prompt_cache_key",
        "monkey",
        "user",
        "tokens_per_minute",
    )
    assert [name for name in secret if not is_secret_name(name)] == []
    assert [name for name in harmless if is_secret_name(name)] == []
