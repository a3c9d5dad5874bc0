"""What Hydra, OmegaConf and YAML say, in one line: key, value, and what was expected."""

import re
from collections.abc import Sequence

import yaml
from hydra.errors import MissingConfigException, OverrideParseException

from monitorbench.config.load import unknown_key


def one_line(error: Exception, overrides: Sequence[str]) -> str:
    """An error of composing `overrides`; where options are to be listed, they are a second line."""
    text = str(error)
    if isinstance(error, MissingConfigException):
        if match := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
            group, option = match.groups()
            options = ", ".join(error.options or [])
            return f"{group}={option}: no such option; expected one of the options of {group!r}\n  {options}"
        return " ".join(text.split())
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}: {' '.join((error.problem or '').split())}; expected YAML"
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not an override; expected key=value, a list as key=[a,b]"
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match.group(1).removeprefix("_global_.")
        given = [a.partition("=")[2] for a in overrides if a.lstrip("+~").partition("=")[0] == key]
        return unknown_key(key, given[0] if given else "")
    given_overrides = " ".join(a for a in overrides if "=" in a)
    # Hydra wraps OmegaConf's grammar errors without their text.
    text = text or str(error.__cause__ or error.__context__ or "")
    return f"{given_overrides}: {' '.join(text.split())}"
