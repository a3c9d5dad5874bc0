"""The folders that settings come from: the `conf/` of the current project, then the package's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import hydra
import yaml

import monitorbench

PACKAGED = Path(monitorbench.__file__).resolve().parent / "conf"
"""Settings that come with the package, `pkg://monitorbench.conf` for Hydra."""
PROJECT = "monitorbench.yaml"
"""File that marks a folder as a user's own project, whose `conf/` comes before the package's."""


def project_conf() -> Path | None:
    """Return the `conf/` of the project in the working directory; None where it is no project."""
    own = Path.cwd() / "conf"
    return own if Path(PROJECT).is_file() and own.is_dir() else None


def trees_of(conf: Path = PACKAGED, added: str | None = None) -> list[Path]:
    """Return the folders that settings are looked for in: that of `--config-dir`, the project's, `conf`."""
    before = [Path(added) if added and Path(added).is_dir() else None, project_conf()]
    return [*filter(None, before), conf]


def options(group: str, trees: Sequence[Path]) -> list[str]:
    """List the options of a group in some trees of settings, those in the group's folders included."""
    return sorted(
        {
            file.relative_to(tree / group).with_suffix("").as_posix()
            for tree in trees
            for file in (tree / group).rglob("*.yaml")
        }
    )


def option_file(group: str, option: str, trees: Sequence[Path]) -> Path | None:
    """Return the file of a group's option in the first tree that has it; None where none has."""
    files = [tree / group / f"{option}.yaml" for tree in trees]
    return next((file for file in files if file.is_file()), None)


def repeated_key(file: Path) -> str:
    """Say where a map in a file has a key twice, as `true` and `1` are to YAML; "" where none has."""
    loader = yaml.SafeLoader(file.read_text(encoding="utf-8"))
    pending = [loader.get_single_node()]
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.SequenceNode):
            pending += node.value
        elif isinstance(node, yaml.MappingNode):
            earlier: dict[object, str] = {}
            for key, value in node.value:
                pending.append(value)
                typed = loader.construct_object(key) if isinstance(key, yaml.ScalarNode) else key
                if typed in earlier:
                    line = key.start_mark.line + 1
                    return (
                        f"{file}, line {line}: {key.value} is the key {earlier[typed]} again; expected "
                        f"words in quotes: '{earlier[typed]}', '{key.value}'"
                    )
                earlier[typed] = key.value
    return ""


def groups(trees: Sequence[Path]) -> list[str]:
    """List the groups of settings in some trees."""
    folders = [path for tree in trees for path in tree.iterdir() if path.is_dir()]
    return sorted({path.name for path in folders if not path.name.startswith((".", "_", "local"))})


@contextmanager
def composing(conf: Path) -> Iterator[None]:
    """Initialize Hydra to compose over the tree `conf`."""
    where = str(conf)
    with (
        hydra.initialize_config_module("monitorbench.conf", version_base="1.3")
        if conf == PACKAGED
        else hydra.initialize_config_dir(where, version_base="1.3")
    ):
        yield
