"""Studies composed from the project's own `conf/`, as a script would compose them.

Hydra composes a choice of files once a process, for all stages at once: their primary files are the same
tree. A plain `a.b=value` is then set on a copy of that tree, as Hydra sets it; `config/test_composing.py`
compares both with Hydra as it is.
"""

import pickle
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from monitorbench.config.load import load
from monitorbench.config.study import Study

CONF = Path(__file__).parent.parent / "conf"


def study(*overrides: str, primary: str = "train") -> Study:
    """The study that `<primary> <overrides>` composes to; without W&B, unless they say otherwise."""
    if not any(override.startswith("tracking") for override in overrides):
        overrides = ("tracking=none", *overrides)
    return load(composed(primary, *overrides))


def composed(primary: str, *overrides: str) -> DictConfig:
    """The tree that Hydra composes of a primary file and overrides, as the caller's own copy."""
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    plain = [override for override in parsed if _sets_a_value(override)]
    choices = sorted(override.input_line for override in parsed if not _sets_a_value(override))
    tree: DictConfig = pickle.loads(_tree(CONF, _same_tree(CONF, primary), tuple(choices)))  # noqa: S301  # made below
    for override in plain:
        try:
            OmegaConf.update(tree, override.key_or_group, override.value(), merge=True)
        except OmegaConfBaseException:
            break  # a setting that is not there, say: Hydra has words of its own for it
    else:
        return tree
    return _compose(CONF, primary, overrides)


def _sets_a_value(override: Override) -> bool:
    """Whether an override is `a.b=value`: it chooses no file, adds and deletes nothing, and is no sweep."""
    key = override.key_or_group
    is_choice = (CONF / key).is_dir() or override.package is not None or key.startswith("hydra")
    return override.type is OverrideType.CHANGE and not is_choice and not override.is_sweep_override()


@cache
def _same_tree(conf: Path, primary: str) -> str:
    """The file whose tree a primary file is: all stages' are `_base`, whole and unchanged."""
    file = conf / f"{primary}.yaml"
    is_base = file.is_file() and file.read_text(encoding="utf-8").split() == ["defaults:", "[_base]"]
    return "_base" if is_base else primary


@cache
def _tree(conf: Path, primary: str, choices: tuple[str, ...]) -> bytes:
    return pickle.dumps(_compose(conf, primary, choices))


def _compose(conf: Path, primary: str, overrides: Sequence[str]) -> DictConfig:
    with initialize_config_dir(str(conf), version_base="1.3"):
        return compose(primary, list(overrides))
