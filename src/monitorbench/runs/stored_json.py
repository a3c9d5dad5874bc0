"""JSON that a stage wrote, read back: as it was written, or one line that names the file.

A file may have been cut off, edited or mistaken for another; none of that is a traceback.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitorbench import strict_json
from monitorbench.config.base import UserError


class StoredObject(dict[str, Any]):
    """A JSON object of a file: a key that it lacks is a `UserError` that names file and key."""

    def __init__(self, found: Mapping[str, Any], file: Path, place: str = "") -> None:
        """`place` is the dotted path of the object inside the file."""
        self._file, self._place = file, place
        super().__init__({key: self._read(key, value) for key, value in found.items()})

    def __missing__(self, key: str) -> Any:
        raise UserError(
            f"{self._file}: no {self._place}{key} in it; expected the file of another stage, or one that "
            "nobody edited"
        )

    def object(self, key: str) -> "StoredObject":
        """The object under a key; `UserError` where it is missing or no object."""
        found = self[key]
        if not isinstance(found, StoredObject):
            raise UserError(
                f"{self._file}: {self._place}{key} is no object; expected the file as a stage wrote it"
            )
        return found

    def _read(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return StoredObject(value, self._file, f"{self._place}{key}.")
        if isinstance(value, list):
            return [self._read(key, one) for one in value]
        return value


def read_json(path: Path) -> Any:
    """The JSON value in a file; `UserError` where it can't be read or is none."""
    try:
        return strict_json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}; expected a file that a stage wrote") from error
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, a key twice
        raise UserError(f"{path}: not JSON ({_reason(error)}); expected it as a stage wrote it") from error


def read_object(path: Path) -> StoredObject:
    """The JSON object in a file; `UserError` where it holds none."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise UserError(f"{path}: a JSON {type(found).__name__}; expected an object, as a stage wrote it")
    return StoredObject(found, path)


def read_objects(path: Path) -> list[StoredObject]:
    """The JSON objects that a file lists; `UserError` where it holds no such list."""
    found = read_json(path)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise UserError(f"{path}: no list of objects; expected it as a stage wrote it")
    return [StoredObject(one, path) for one in found]


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:100]
