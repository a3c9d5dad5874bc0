"""A resolved study as one JSON file: `frozen=run.json` runs exactly that, and no YAML is read.

A run directory's `config.json` is such a file too.
"""

from pathlib import Path

from monitorbench.config.errors import ConfigError
from monitorbench.config.load import validate
from monitorbench.config.study import Study


def freeze(study: Study) -> str:
    """The file's text; `read_frozen` gives the equal study back."""
    return study.model_dump_json(indent=2) + "\n"


def read_frozen(path: Path) -> Study:
    """Read and validate a frozen study.

    Raises:
        ConfigError: for a file that can't be read, is no JSON, or is no study.

    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(
            f"frozen={path}: {reason}; expected a run-NNN.json of a sweep or a run's config.json"
        ) from error
    try:
        return validate(text)
    except ConfigError as error:
        raise ConfigError(f"frozen={path}: {error}") from error
