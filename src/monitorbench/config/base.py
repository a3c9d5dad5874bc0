"""The strict base model of all settings, and the errors that a user can fix."""

import ast
import inspect
import textwrap
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=80)]
"""A name that becomes part of a folder's name, next to a hash and other names: a file system allows 255 bytes
in all."""


def field_texts(model: type[BaseModel]) -> dict[str, str]:
    """Return the text that stands below each field of a model, its parents' fields included.

    Pydantic's `use_attribute_docstrings` reads the same text, but while a class is made: every command would
    start 0.15 s later. Here it is read only for those who ask.
    """
    texts: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if not issubclass(parent, Config) or parent is Config:
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(parent))).body
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                texts[ast.unparse(field.target)] = " ".join(str(ast.literal_eval(text.value)).split())
    return {name: text for name, text in texts.items() if name in model.model_fields}


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Give a model's JSON schema the texts below its fields as descriptions."""
    for name, text in field_texts(model).items():
        schema["properties"][model.model_fields[name].alias or name]["description"] = text


class Config(BaseModel):
    """Base of all settings. Values are validated strictly: a string is no number, a boolean no integer."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, json_schema_extra=_describe
    )


def as_tuple(value: object) -> object:
    """Turn a list from YAML into a tuple, which strict mode would refuse; a string stays one."""
    return tuple(value) if isinstance(value, list) else value


def as_typed(value: object) -> object:
    """Turn a word that YAML and Hydra take for a number, a truth value or nothing back into text."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def as_words(value: object) -> object:
    """Turn one word, or a list of words, into a tuple of texts as they were typed."""
    return tuple(map(as_typed, value)) if isinstance(value, list | tuple) else (as_typed(value),)


Word = Annotated[str, BeforeValidator(as_typed)]
Words = Annotated[tuple[str, ...], BeforeValidator(as_words)]


class ConfigError(ValueError):
    """A bad setting: the key, its value and what was expected. Exit code 2."""


class UserError(Exception):
    """Any other foreseen failure, such as a missing file. Exit code 1."""


class Incomplete(UserError):
    """A run ended before it had all of its results; the same command does the rest."""


class Preempted(KeyboardInterrupt):
    """The run was signalled to stop; a later start does the rest of its work. Exit code 75, EX_TEMPFAIL.

    An interrupt, so that whatever survives other failures lets it through.
    """
