"""Hydra's composing with a memory: a file is parsed, and a choice of files merged, once a process.

Composing our tree costs a third of a second, nearly all of it for what was read and merged before, and
the tests do it over a thousand times. What is remembered belongs to files as they are on disk, by path,
time and size; everything else of a composition, overrides among it, is done anew each time.
`config/test_composing.py` compares with Hydra as it is.
"""

import pickle
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.plugins import Plugins

Plugins.instance()
FileConfigSource: Any = SourcesRegistry.instance().resolve("file")
"""Hydra loads its own plugins anew when it looks for them: the class that an import gives is another."""

_LOADED: dict[object, bytes] = {}
_MERGED: dict[object, bytes] = {}
PARSE: Callable[..., Any] = FileConfigSource.load_config
"""As Hydra has it."""
MERGE: Callable[..., Any] = ConfigLoaderImpl._compose_config_from_defaults_list
"""As Hydra has it."""


def _stamp(source: Any, config: str) -> tuple[object, ...]:
    """A file as it is now: where, when written, how long; empty where there is none."""
    path = Path(source.path, source._normalize_file_name(config)).resolve()
    try:
        stat = path.stat()
    except OSError:
        return ()
    return str(path), stat.st_mtime_ns, stat.st_ino, stat.st_size


def _remembered(memory: dict[object, bytes], key: object, make: Callable[[], Any]) -> Any:
    """A copy of its own for everyone who asks: what Hydra merges into is changed by it."""
    if key not in memory:
        memory[key] = pickle.dumps(make())
    return pickle.loads(memory[key])  # noqa: S301  # made above and never stored; a deep copy takes longer


@wraps(PARSE)
def _parse(self: Any, config_path: str) -> Any:
    if not (stamp := _stamp(self, config_path)):
        return PARSE(self, config_path)
    return _remembered(_LOADED, (self.path, self.provider, stamp), lambda: PARSE(self, config_path))


@wraps(MERGE)
def _merge(self: ConfigLoaderImpl, defaults: Sequence[Any], repo: Any) -> Any:
    # A default is a plain dataclass, whose text says all of it; a source is its kind, place and provider.
    sources = repo.get_sources()
    files = tuple(
        _stamp(source, default.config_path)
        for source in sources
        if isinstance(source, FileConfigSource)
        for default in defaults
        if default.config_path is not None
    )
    key = (repr(defaults), repr(sources), files)
    return _remembered(_MERGED, key, lambda: MERGE(self, defaults=defaults, repo=repo))


def remember() -> None:
    """From here on, in this process."""
    FileConfigSource.load_config = _parse
    ConfigLoaderImpl._compose_config_from_defaults_list = _merge  # type: ignore[method-assign]  # for tests


def forget() -> None:
    """Hydra as it is."""
    FileConfigSource.load_config = PARSE
    ConfigLoaderImpl._compose_config_from_defaults_list = MERGE  # type: ignore[method-assign]  # as it was
