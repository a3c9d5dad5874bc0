"""Where the GGUF file is that a monitor's weights are in: on this machine, in a package, or on the hub."""

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.monitor import Monitor, PackagedModel
from monitorbench.engines.stored.gguf_model import gguf_sha256
from monitorbench.engines.stored.hub import hub_commit, hub_file, hub_file_sha256


@dataclass(frozen=True)
class GgufSource:
    """A GGUF file, and what is made of it."""

    identity: str
    """What names its weights: a package's version, or the SHA-256 of the file."""
    folder: str
    """The model folder that is made of it, below `paths.models`."""
    where: str
    """The setting that names it, for messages."""
    file: Callable[[], Path]
    """The file itself, downloaded where it has to be; raises `UserError` where it can't be had."""
    results: Mapping[str, Any]
    """What the folder's manifest says that it was made of: no path."""


def gguf_source(monitor: Monitor) -> GgufSource | None:
    """The monitor's GGUF file; None for weights that are a model folder, here or on the hub.

    Nothing is downloaded. Raises `UserError` where there is no such file, or the hub doesn't know it.
    """
    if monitor.path is not None:
        return None
    if monitor.gguf is not None:
        file, where = monitor.gguf, f"monitor.gguf={monitor.gguf}"
        return _by_content(gguf_sha256(file, where), where, lambda: file)
    if monitor.gguf_file is not None:
        repo, name, where = monitor.hub_id, monitor.gguf_file, f"monitor.gguf_file={monitor.gguf_file}"
        commit = hub_commit(repo, monitor.revision)
        return _by_content(hub_file_sha256(repo, commit, name), where, lambda: hub_file(repo, commit, name))
    if monitor.package is not None:
        package, named = monitor.package, f"{monitor.package.distribution}-{monitor.package.version}"
        return GgufSource(
            identity=f"pypi:{package.distribution}=={package.version}",
            folder=named,
            where=named,
            file=lambda: _in_package(package),
            results=package.model_dump(),
        )
    return None


def _by_content(sha256: str, where: str, file: Callable[[], Path]) -> GgufSource:
    return GgufSource(f"gguf:{sha256}", f"gguf-{sha256[:12]}", where, file, {"gguf_sha256": sha256})


def _in_package(package: PackagedModel) -> Path:
    try:
        distribution = importlib.metadata.distribution(package.distribution)
        file = Path(str(distribution.locate_file(package.file)))
        if distribution.version != package.version:
            raise UserError(
                f"{package.distribution} {distribution.version} is installed, but the configuration says "
                f"{package.version}: change one of them"
            )
    except importlib.metadata.PackageNotFoundError:
        file = Path()
    if not file.is_file():
        raise UserError(
            f"the package {package.distribution} is not installed; in a clone `make setup` brings it, else "
            f"`pip install --no-deps {package.distribution}=={package.version}`"
        )
    return file
