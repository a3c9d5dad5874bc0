"""The reference of all settings, out of the typed models and `conf/`: `docs/settings.md`.

    python -m monitorbench.config.reference docs/settings.md

Promises: every key that a study may have is in it once for each kind of its group, with its type, the value
that `conf/` or the model gives it, and the model's own words; nothing is said here that is not said there.
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from omegaconf import OmegaConf
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from monitorbench.config.datasets import SplitView
from monitorbench.config.study import Study

_MISSING = object()
_HEAD = """# Settings

Every key, its type, what it is unless you say otherwise, and what it means. A key on the command line is an
override: `seed=1`, `dataset.test.subset=safety_permission`. A group such as `engine` is chosen as a whole
(`engine=vllm`); what it sets can then be overridden. This page is generated from the models and
`conf/` (`python -m monitorbench.config.reference docs/settings.md`).
"""
_PLAIN = {int: "whole number", float: "number", str: "text", bool: "true or false", Path: "path"}


class SettingRow(NamedTuple):
    """One key."""

    key: str
    type: str
    default: str
    meaning: str


@cache
def _group_models() -> dict[type[BaseModel], str]:
    """The groups' own models: where a setting elsewhere is one of these, the page leads to the group."""
    names = ("monitor", "prompt", "engine", "source")
    return {model: name for name in names for model in _models(Study.model_fields[name].annotation)}


def reference(conf: Path) -> str:
    """The page's text, of the settings in the folder `conf`."""
    base = _read(conf / "_base.yaml")
    chosen = _chosen_options(base)
    meanings = _meanings(Study)
    scripts, groups = [], []
    for attribute, field in Study.model_fields.items():
        name = field.alias or attribute
        options = sorted(file.stem for file in (conf / name).glob("*.yaml")) if (conf / name).is_dir() else []
        models = _models(field.annotation)
        if not models:
            value = base.get(name, _MISSING)
            scripts += list(_field_rows(name, field, value, meanings.get(attribute, "")))
        elif options and name != "source":
            groups.append(_group(conf / name, models, options, chosen.get(name)))
        else:
            value = base.get(name, {})
            inner = [row for model in models for row in _rows(model, name, value if name != "source" else {})]
            prefix = f"{meanings[name]}\n\n" if name in meanings else ""
            title = f"## {name}\n\n{prefix}{_about(models[0])}"
            groups.append("\n\n".join((title, _table(_of_mapping(inner, name, field)))))
    top = "## At the top\n\n" + _table(scripts)
    return "\n\n".join((_HEAD.rstrip(), top, *groups)) + "\n"


def _of_mapping(rows: list[SettingRow], name: str, field: FieldInfo) -> list[SettingRow]:
    """The rows of a mapping's values have `NAME` in their keys."""
    if get_origin(field.annotation) is not dict:
        return rows
    return [row._replace(key=row.key.replace(f"{name}.", f"{name}.NAME.", 1)) for row in rows]


def _group(folder: Path, models: list[type[BaseModel]], options: list[str], default: str | None) -> str:
    """A group's section: its options, and a table for each kind."""
    name = folder.name
    values = {option: _option(folder, option) for option in options}
    parts = [
        f"## {name}\n\n`{name}=` one of {', '.join(f'`{one}`' for one in options)}; "
        f"without it {f'`{default}`' if default else 'none'}."
    ]
    for model in models:
        kinds = _kinds(model)
        fitting = [one for one in options if not kinds or values[one].get("kind", kinds[0]) in kinds]
        shown = default if default in fitting else next(iter(fitting), None)
        about = _about(model)
        if len(models) > 1:
            about = f"### {name}.kind={' or '.join(kinds)}\n\n{about}"
        if shown:
            about += f" The values are those of `{name}={shown}`."
        parts += [about, _table(list(_rows(model, name, values.get(shown or "", {}))))]
    return "\n\n".join(parts)


def _rows(model: type[BaseModel], prefix: str, values: Any) -> Iterator[SettingRow]:
    meanings = _meanings(model)
    seen: dict[Any, str] = {}
    for name, field in model.model_fields.items():
        if name == "kind" and len(_kinds(model)) == 1:
            continue  # the section's title
        first = seen.setdefault(field.annotation, name) if _models(field.annotation) else name
        if first != name and field.annotation is SplitView:
            yield SettingRow(f"{prefix}.{name}", "settings", "", f"As `{prefix}.{first}`, of this split.")
            continue
        value = values.get(name, _MISSING) if isinstance(values, Mapping) else _MISSING
        yield from _field_rows(f"{prefix}.{name}", field, value, meanings.get(name, ""))


def _field_rows(key: str, field: FieldInfo, value: Any, meaning: str) -> Iterator[SettingRow]:
    if value is _MISSING and not field.is_required():
        value = field.get_default(call_default_factory=True)
    models = _models(field.annotation)
    if group := next(
        (
            _group_models()[model]
            for model in models
            if model in _group_models() and key != _group_models()[model]
        ),
        "",
    ):
        yield SettingRow(key, f"as [{group}](#{group})", "", meaning)
        return
    if meaning or not models:
        yield SettingRow(key, _type(field.annotation, field.metadata), _shown(value, bool(models)), meaning)
    is_mapping = get_origin(_without_none(field.annotation)) is dict
    for model in models:
        inner: Any = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        # Of a list or a mapping each entry is one; of several models, whichever the entry's kind names.
        entry = f"{key}.NAME" if is_mapping else key
        yield from _rows(model, entry, {} if is_mapping or not isinstance(inner, Mapping) else inner)


def _type(annotation: Any, metadata: Any = ()) -> str:
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _type(inner, [*more, *metadata])
    limits = _limits(metadata)
    if get_origin(annotation) in (Union, UnionType):
        members = [one for one in get_args(annotation) if one is not NoneType]
        names = list(dict.fromkeys(_type(one, metadata) for one in members))
        return " or ".join([*names, *(["null"] if len(members) < len(get_args(annotation)) else [])])
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(f"`{one}`" for one in get_args(annotation))
    if get_origin(annotation) in (tuple, list):
        inner = [one for one in get_args(annotation) if one is not Ellipsis]
        return f"list of {_type(inner[0])}" + limits
    if get_origin(annotation) is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "settings"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "one of " + ", ".join(f"`{one.value}`" for one in annotation)
    return _PLAIN.get(annotation, "any value") + limits


def _limits(metadata: Any) -> str:
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    plain = [part for one in metadata for part in (one.metadata if isinstance(one, FieldInfo) else [one])]
    found = [
        f"{sign} {value:g}"
        for one in plain
        for name, sign in signs.items()
        if isinstance(value := getattr(one, name, None), int | float) and abs(value) < 2**31
    ]
    return f", {', '.join(found)}" if found else ""


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models that an annotation allows, in lists and mappings too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) is dict:
        return _models(get_args(annotation)[1])
    if get_origin(annotation) is Literal:
        return []
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _without_none(annotation: Any) -> Any:
    members = [one for one in get_args(annotation) if one is not NoneType]
    is_union = get_origin(annotation) in (Union, UnionType)
    return members[0] if is_union and len(members) == 1 else annotation


def _kinds(model: type[BaseModel]) -> tuple[str, ...]:
    kind = model.model_fields.get("kind")
    return get_args(kind.annotation) if kind is not None and get_origin(kind.annotation) is Literal else ()


@cache
def _meanings(model: type[BaseModel]) -> Mapping[str, str]:
    """What stands below each field in the source of a model, and of those that it inherits from."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if one in (BaseModel, object) or not issubclass(one, BaseModel):
            continue
        (body,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(one))).body
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[field.target.id] = " ".join(str(text.value.value).split())
    return found


def _about(model: type[BaseModel]) -> str:
    return " ".join((inspect.getdoc(model) or "").split())


def _chosen_options(base: Mapping[str, Any]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for entry in base["defaults"]:
        if isinstance(entry, Mapping):
            chosen |= {str(group): option for group, option in entry.items() if option is not None}
    return chosen


def _option(folder: Path, name: str) -> dict[str, Any]:
    """A file of a group, on top of those of the same group that it names as its defaults."""
    own = _read(folder / f"{name}.yaml")
    merged: dict[str, Any] = {}
    for entry in own.pop("defaults", []):
        if isinstance(entry, str) and entry != "_self_" and (folder / f"{entry}.yaml").is_file():
            merged |= _option(folder, entry)
    return merged | own


def _read(file: Path) -> dict[str, Any]:
    # As Hydra reads it: YAML's own readers take 4e-4 for text.
    found: dict[str, Any] = OmegaConf.to_container(OmegaConf.load(file), resolve=False)  # type: ignore[assignment]
    return found


def _shown(value: Any, is_group: bool) -> str:
    if value is _MISSING or (is_group and isinstance(value, Mapping | BaseModel | list) and value):
        return ""
    if value == "???":
        return "*required*"
    if isinstance(value, str) and re.search(r"\$\{", value):
        return f"`{value}`"
    if isinstance(value, tuple):
        value = list(value)
    text = json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False, default=str)
    text = text.strip('"') if isinstance(value, str) and value else text
    return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


def _table(rows: list[SettingRow]) -> str:
    def cell(text: str) -> str:
        return " ".join(text.split()).replace("|", "\\|")

    lines = [
        f"| `{row.key}` | {cell(row.type)} | {cell(row.default)} | {cell(row.meaning)} |" for row in rows
    ]
    return "\n".join(["| key | type | default | meaning |", "| --- | --- | --- | --- |", *lines])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(Path(__file__).parents[1] / "conf"), encoding="utf-8")
