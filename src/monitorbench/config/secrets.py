"""Refuse keys among the settings, which land in `config.json`, in manifests and in W&B, and hide keys in
texts.

Promises: a setting that holds a key is refused in one line that does not print it, before a file is made. A
key is recognized by the name of its field, where a setting takes fields of any name; by the form that
providers give their keys; or because an environment variable named like a secret holds the same text.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from monitorbench.config.base import ConfigError

HIDDEN = "(hidden)"
_FREE_FORM = frozenset(("extra_body", "chat_template_kwargs"))
"""Settings that take fields of any name."""
_SECRET_NAME = re.compile(
    r"(?:^|[._-])(?:(?:api|access|auth|client|secret|private|account|subscription|master|signing|encryption)[_-]?)?"
    r"(?:keys?|token|secrets?|passw(?:or)?ds?|passphrase|pat|auth|authorization|credentials?|bearer|cookies?)$",
    re.IGNORECASE,
)
_NO_SECRET_NAME = re.compile(
    r"(?:^|[._-])(?:(?:full|(?:prompt[_-]?)?cache)[_-]?key|(?:[bems]os|pad|unk|cls|sep|mask|stop|start|end)[_-]?tokens?)$",
    re.IGNORECASE,
)
"""Fields of requests, of chat templates and of error messages that end like a secret's name and hold none."""
_KEY_FORMS = (
    r"hf_\w{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|AIza[\w-]{20,}|AKIA[A-Z0-9]{12,}|gsk_\w{16,}"
    r"|xai-\w{16,}|r8_\w{16,}|pplx-\w{16,}|xox[abp]-[\w-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
)
_IS_KEY = re.compile(rf"(?:Bearer|Basic)\s+\S+|sk-(?=[\w-]*\d)[\w-]{{16,}}|{_KEY_FORMS}")
"""A setting that is nothing but a key."""
_KEY = re.compile(rf"(?<![\w-])(?:sk-[\w-]{{6,}}|{_KEY_FORMS})")
_HAS_KEY = re.compile(rf"(?<![\w-])(?:Bearer|Basic)\s+[\w+/=.~-]{{6,}}|{_KEY.pattern}")
"""A text with something in it that looks like a key."""
SHORTEST_SECRET = 8
"""Fewest characters of a secret variable's value; a shorter one is a placeholder, and a word like others."""
_IN_URL = re.compile(r"(?<=://)[^/\s@]*:[^/\s@]*(?=@)|(?<=\?)[^\s;:]*=[^\s;:]*")
"""A URL's user and password, and its query."""
_ASSIGNED = re.compile(
    r"""(?P<name>[\w.-]+)(?P<sign>\s*=\s*|["']?\s*:\s*["']?(?=\S))(?P<value>'[^']*'|"[^"]*"|[^\s;,{}[\]"']+?(?=:?(?:[\s;,}\]"']|$)))"""
)
_VARIABLE = re.compile(r"(?:[A-Z_][A-Z0-9_]*|null)\)?")
"""A variable's name, or none, as it stands behind `api_key_env=`, also at the end of a bracket."""


def is_secret_name(name: str) -> bool:
    """Return whether a field, a setting or a variable of this name holds a key, as `X-Auth-Token` does."""
    return _SECRET_NAME.search(name) is not None and not _NO_SECRET_NAME.search(name)


def secret_values() -> set[str]:
    """Return the values of the environment variables that are named like a secret."""
    values = {value.strip() for name, value in os.environ.items() if is_secret_name(name)}
    return {value for value in values if len(value) >= SHORTEST_SECRET}


def refuse_secrets(tree: Any) -> None:
    """Raise `ConfigError` for the first setting of a tree that holds a key; the line names it alone."""
    values = secret_values()
    for path, value in _texts(tree, ()):
        key = ".".join(path)
        free = next((index for index, name in enumerate(path) if name in _FREE_FORM), None)
        is_field = free is not None and any(map(is_secret_name, path[free + 1 :]))
        has_form = _IS_KEY.fullmatch(value) or (free is not None and _HAS_KEY.search(value))
        if value and (
            is_field or has_form or _url_has_secret(value) or any(secret in value for secret in values)
        ):
            raise ConfigError(
                f"{key}={HIDDEN}: a key among the settings, which are written to files; expected it in an "
                "environment variable alone, whose NAME is engine.api_key_env"
            )


def without_keys(text: str) -> str:
    """Hide in a text what has the form of a provider's key, or is the value of a secret's variable."""
    for value in secret_values():
        text = text.replace(value, HIDDEN)
    return _KEY.sub(HIDDEN, text)


def without_secrets(text: str) -> str:
    """Hide in a message everything that is, by its name or its form, a key."""
    return _ASSIGNED.sub(_hide_assigned, _IN_URL.sub(HIDDEN, _HAS_KEY.sub(HIDDEN, without_keys(text))))


def _hide_assigned(match: re.Match[str]) -> str:
    name, sign, value = match["name"], match["sign"], match["value"]
    names_variable = name.endswith("_env") and is_secret_name(name.removesuffix("_env"))
    # In prose a colon follows many a word: only inside of braces does it stand before a value.
    before = match.string[: match.start()]
    is_pair = "=" in sign or before.count("{") > before.count("}")
    is_hidden = not _VARIABLE.fullmatch(value) if names_variable else is_secret_name(name) and is_pair
    if value.lower() == "value":  # what a hint has in the place of one: `expected key=value`
        return match[0]
    return f"{name}{sign}{HIDDEN}" if is_hidden else match[0]


def _url_has_secret(value: str) -> bool:
    """Whether a URL has a user's password, or a key among its query's fields."""
    if "://" not in value:
        return False
    try:
        url = urlsplit(value)
        return bool(url.password) or any(is_secret_name(name) for name, _ in parse_qsl(url.query))
    except ValueError:
        return False


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every string of a tree with the names that lead to it; a list's members have the list's name."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, path)
