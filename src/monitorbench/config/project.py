"""Where settings are looked for: in the `conf/` of the project that is worked in, then in the package's."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hydra

import monitorbench

PACKAGED = Path(monitorbench.__file__).resolve().parent / "conf"
"""The settings that come with the package, `pkg://monitorbench.conf` for Hydra."""
PROJECT = "monitorbench.yaml"
"""Marks a folder as a project of one's own, whose `conf/` comes before the package's."""


def project_conf() -> Path | None:
    """The settings of the project that the working directory is, if it is one."""
    own = Path.cwd() / "conf"
    return own if Path(PROJECT).is_file() and own.is_dir() else None


def search_path(conf: Path = PACKAGED) -> list[Path]:
    """The folders in which settings are looked for, the first that has a file winning."""
    return [tree for tree in (project_conf(), conf) if tree is not None]


def options(group: str, conf: Path = PACKAGED) -> list[str]:
    """The options of a group in the tree `conf` and in the project, those in folders of it included."""
    folders = [tree / group for tree in search_path(conf)]
    return sorted(
        {file.relative_to(one).with_suffix("").as_posix() for one in folders for file in one.rglob("*.yaml")}
    )


def groups(conf: Path = PACKAGED) -> list[str]:
    """The groups of settings in the tree `conf` and in the project."""
    found = [path for tree in search_path(conf) for path in tree.iterdir()]
    return sorted(
        {path.name for path in found if path.is_dir() and not path.name.startswith((".", "_", "local"))}
    )


@contextmanager
def composing(conf: Path) -> Iterator[None]:
    """Hydra, ready to compose over the tree `conf`."""
    where = str(conf)
    with (
        hydra.initialize_config_module("monitorbench.conf", version_base="1.3")
        if conf == PACKAGED
        else hydra.initialize_config_dir(where, version_base="1.3")
    ):
        yield
