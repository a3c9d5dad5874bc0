"""What the tests of recorded sets share: archives packed on the spot, and the settings of `conf/recorded`."""

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from monitorbench.config.pilot import Recorded
from monitorbench.config.reference import option
from monitorbench.config.sources import Source, SourceFile
from monitorbench.config.study import Paths
from monitorbench.sources.read import RawFile, SourceFiles

_SETTINGS: TypeAdapter[Any] = TypeAdapter(Recorded)


def _source_files(name: str, *paths: Path) -> SourceFiles:
    found = tuple(RawFile(path, SourceFile(path=path.name, mirror="", sha256="")) for path in paths)
    source = Source(
        origin="none", repo="", revision="", licence="MIT", files=tuple(file.config for file in found)
    )
    return SourceFiles(name, source, found, "error")


@pytest.fixture
def archived(tmp_path: Path) -> Callable[..., SourceFiles]:
    """`archived("reflexion", ("a/b.json", content), …)`: members in that order; values become JSON."""

    def make(name: str, *members: tuple[str, Any]) -> SourceFiles:
        path = tmp_path / f"{name}.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for member, content in members:
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return _source_files(name, path)

    return make


@pytest.fixture
def as_files(tmp_path: Path) -> Callable[..., SourceFiles]:
    """`as_files("fireact", ("agent-a.json", content), …)`: plain files; values become JSON."""

    def make(name: str, *contents: tuple[str, Any]) -> SourceFiles:
        paths = []
        for file, content in contents:
            path = tmp_path / file
            path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
            paths.append(path)
        return _source_files(name, *paths)

    return make


@pytest.fixture
def recorded(root: Path) -> Callable[..., Any]:
    """`recorded("reflexion_mbpp", trial=3)`: the settings of `conf/recorded/`, some of them changed."""

    def settings(name: str, **changes: Any) -> Any:
        def read(*path: str) -> Any:
            return yaml.safe_load(root.joinpath("conf", *path).read_text(encoding="utf-8"))

        values = option("recorded", name)
        source = values["source"].removeprefix("${source.").removesuffix("}")
        values |= {"source": read("source", f"{source}.yaml"), **changes}
        return _SETTINGS.validate_json(json.dumps(values))

    return settings


@pytest.fixture
def mirror(tmp_path: Path) -> Paths:
    """Paths with the real local mirror; skips without one."""
    folder = os.environ.get("MONITORBENCH_SOURCES")
    if not folder:
        pytest.skip("MONITORBENCH_SOURCES is not set")
    return Paths(data=tmp_path, runs=tmp_path, models=tmp_path, sources=Path(folder))
