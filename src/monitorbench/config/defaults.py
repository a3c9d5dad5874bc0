"""All defaults as trees for Hydra, taken from the models' fields, which alone state them.

`_base.yaml` names `_settings` first in its defaults list, so every key is in the tree before a file or an
override sets it. A group with options of several kinds has one such tree for each kind, such as
`engine/_vllm`; an option of that kind names it in its own defaults list.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from omegaconf import DictConfig, OmegaConf
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from monitorbench.config.project import PACKAGED, trees_of
from monitorbench.config.study import Study

REQUIRED = "???"
"""Placeholder in Hydra's trees for a value that a user has to give."""


@cache
def names() -> frozenset[str]:
    """Return the names of all trees, such as `_settings`, `engine/_vllm` and `source/_all`."""
    return frozenset({"_settings", "source/_all", *_models()})


def tree(name: str) -> DictConfig:
    """Return the tree of that name. Hydra may set unknown keys in it: the models refuse them, naming the
    nearest."""
    if name == "source/_all":
        return OmegaConf.create(sources())
    if name != "_settings":
        return OmegaConf.create(defaults(_models()[name]), flags={"struct": False})
    settings = defaults(Study)
    root = OmegaConf.create(settings)
    for key, value in settings.items():
        if isinstance(value, dict):
            OmegaConf.set_struct(root[key], False)
    return root


def option(group: str, name: str, conf: Path = PACKAGED) -> dict[str, Any]:
    """Return all settings of an option, its defaults list included; interpolations stay as they are."""
    own = OmegaConf.load(conf / group / f"{name}.yaml")
    assert isinstance(own, DictConfig)
    below = base_of(group, own.pop("defaults", []), conf)
    settings: dict[str, Any] = OmegaConf.to_container(OmegaConf.merge(below, own))  # type: ignore[assignment]
    return settings


def base_of(group: str, entries: Iterable[Any], conf: Path = PACKAGED) -> DictConfig:
    """Return the settings that an option builds on: the group's defaults and those that its own defaults list
    names."""
    default = defaults(Study)[group]
    base = OmegaConf.create(default if isinstance(default, dict) else {})
    for entry in entries:
        if isinstance(entry, str) and entry != "_self_":
            base.merge_with(tree(f"{group}/{entry}") if entry.startswith("_") else option(group, entry, conf))
    return base


def sources() -> dict[str, Any]:
    """Return every file in `source/` by its name: the package's, or a project's own in its place."""
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    files = {file.stem: file for conf in trees_of()[::-1] for file in sorted(conf.glob("source/*.yaml"))}
    return {name: yaml.load(files[name].read_text(encoding="utf-8"), loader) for name in sorted(files)}


def _models() -> dict[str, type[BaseModel]]:
    """Return the models of the groups' kinds by the names of their trees."""
    return {
        f"{field.alias or name}/_{kind}": model
        for name, field in Study.model_fields.items()
        for kind, model in kinds(field.annotation).items()
    }


def defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Return the default of each field of a model by its key; `???` where there is none."""
    return {field.alias or name: _default(field) for name, field in model.model_fields.items()}


def _default(field: FieldInfo) -> Any:
    if not field.is_required():
        return to_jsonable_python(field.get_default(call_default_factory=True))
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
        return defaults(field.annotation)
    if kinds(field.annotation):
        return {}
    words = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    return words[0] if len(words) == 1 else REQUIRED


def kinds(annotation: Any) -> dict[str, type[BaseModel]]:
    """Return the models among which a setting's `kind` chooses, by kind; empty for a setting of one form."""
    by_kind: dict[str, type[BaseModel]] = {}
    for model in members(annotation):
        kind = model.model_fields.get("kind")
        words = get_args(kind.annotation) if kind is not None and kind.is_required() else ()
        by_kind |= dict.fromkeys(words if len(words) == 1 else (), model)
    return by_kind


def members(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation allows directly, not inside a list or a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (dict, tuple, list, Literal):
        return []
    return [model for argument in get_args(annotation) for model in members(argument)]
