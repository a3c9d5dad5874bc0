"""What every config model and every stage shares: the strict base model and the errors a person can fix."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=80)]
"""What names a directory together with a hash and other names: a file system takes 255 bytes in all."""


class Config(BaseModel):
    """Values are validated strictly: a string is no number, a boolean no integer."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ConfigError(ValueError):
    """A bad setting: the key, its value and what was expected. Exit code 2."""


class UserError(Exception):
    """Anything else foreseen, such as a missing file. Exit code 1."""


class Incomplete(UserError):
    """A run ended before it had all of its results; the same command does the rest."""


class Preempted(KeyboardInterrupt):
    """The run was signalled to stop; a later start does the rest of its work. Exit code 75, EX_TEMPFAIL.

    An interrupt, so that whatever survives other failures lets it through.
    """
