"""All settings with their defaults, which the models' fields alone state: as trees for Hydra, and as a page.

`_base.yaml` names `_settings` first in its defaults list, so every key is in the tree before a file or an
override sets it. A group with options of several kinds has one such tree for each kind, such as
`engine/_vllm`; an option of that kind names it in its own defaults list. The page is `docs/settings.md`, from
the models' JSON schema:

    python -m monitorbench.config.reference docs/settings.md

Promises: every key that a study may have is on the page, once for each kind of its group, with its type, its
default and the text that stands below its field.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import yaml
from omegaconf import DictConfig, OmegaConf
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from monitorbench.config.load import members
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
    settings = defaults(Study)
    default = (settings["prompt"] | settings)[group]  # what a monitor sees is part of its prompt
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
        kind = None if get_origin(model) is dict else model.model_fields.get("kind")
        words = get_args(kind.annotation) if kind is not None and kind.is_required() else ()
        by_kind |= dict.fromkeys(words if len(words) == 1 else (), model)
    return by_kind


_HEAD = """# Settings

Every key, its type, its default, and what it means. A key on the command line is an override: `seed=1`,
`dataset.test.subset=safety_permission`. A group such as `engine` is chosen as a whole (`engine=vllm`); what
it sets can then be overridden. This page is generated from the models
(`python -m monitorbench.config.reference docs/settings.md`).
"""
_LINKED = ("monitor", "prompt", "engine", "source")
"""Groups whose settings also occur inside other groups, where the page links to their own section."""
_TYPES = {"integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}
_LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}

Schema = Mapping[str, Any]


class SettingRow(NamedTuple):
    """One key with its type, default and meaning."""

    key: str
    type: str
    default: str
    meaning: str


def reference(conf: Path) -> str:
    """Return the page's text; `conf` is the folder with the options of the groups."""
    schema = Study.model_json_schema()
    page = _Page(
        schema["$defs"],
        {model: name for name in _LINKED for model in _named_models(schema["properties"][name])},
    )
    settings = defaults(Study)
    chosen = _chosen_options(conf / "_base.yaml")
    top, sections = list[SettingRow](), list[str]()
    for name, field in schema["properties"].items():
        names = [] if name == "source" else sorted(file.stem for file in (conf / name).glob("*.yaml"))
        if not _named_models(field):
            top += page.rows(name, field, settings[name])
        elif names:
            values = {each: option(name, each, conf) for each in names}
            sections.append(page.group(name, field, values, chosen.get(name)))
        else:
            sections.append(page.section(name, field, settings[name]))
    return "\n\n".join((_HEAD.rstrip(), "## At the top", _table(top), *sections)) + "\n"


class _Page(NamedTuple):
    """Lookup tables for every section of the page: the models' schemas, and the groups that some models link
    to."""

    models: Mapping[str, Schema]
    linked: Mapping[str, str]

    def section(self, name: str, field: Schema, values: Any) -> str:
        """Return the section of settings that have no options to choose from."""
        (model,) = _named_models(field)
        rows = list(
            self.rows_below(f"{name}.NAME" if "additionalProperties" in field else name, model, values)
        )
        return "\n\n".join([f"## {name}", *_texts(field), *_texts(self.models[model]), _table(rows)])

    def group(self, name: str, field: Schema, values: Mapping[str, Any], chosen: str | None) -> str:
        """Return the section of a group: its options, and a table for each kind."""
        choice = ", ".join(f"`{each}`" for each in values)
        texts = [
            f"## {name}",
            f"`{name}=` one of {choice}; without it {f'`{chosen}`' if chosen else 'none'}.",
        ]
        texts += _texts(field)
        for model in _named_models(field):
            kind = self.models[model]["properties"].get("kind", {}).get("const")
            fitting = [each for each, tree in values.items() if kind is None or tree["kind"] == kind]
            example = chosen if chosen in fitting else fitting[0]
            about = [*_texts(self.models[model]), f"The values are those of `{name}={example}`."]
            texts += [f"### {name}.kind={kind}"] if kind is not None else []
            texts += [" ".join(about), _table(list(self.rows_below(name, model, values[example])))]
        return "\n\n".join(texts)

    def rows_below(self, prefix: str, model: str, values: Any) -> Iterator[SettingRow]:
        """Yield the rows of a model's fields."""
        first_of: dict[tuple[str, ...], str] = {}
        for name, field in self.models[model]["properties"].items():
            if name == "kind" and "const" in field:
                continue  # the section's title
            first = first_of.setdefault(tuple(_named_models(field)) or (name,), name)
            if first != name and "anyOf" not in field:
                meaning = " ".join([*_texts(field), f"Its settings are those of `{prefix}.{first}`."])
                yield SettingRow(f"{prefix}.{name}", "settings", "", meaning)
                continue
            default = field.get("default", REQUIRED)
            value = values.get(name, default) if isinstance(values, Mapping) else default
            yield from self.rows(f"{prefix}.{name}", field, value)

    def rows(self, key: str, field: Schema, value: Any) -> Iterator[SettingRow]:
        """Yield the row of a field, and those of the settings below it."""
        models = _named_models(field)
        (meaning,) = _texts(field) or [""]
        group = next((self.linked[model] for model in models if self.linked.get(model, key) != key), "")
        if group:
            yield SettingRow(key, f"as [{group}](#{group})", "", meaning)
            return
        if meaning or not models:
            default = "" if models and isinstance(value, Mapping | list) and value else _printed(value)
            yield SettingRow(key, self.type_of(field), default, meaning)
        entry = f"{key}.NAME" if "additionalProperties" in field else key
        for model in models:
            if self.models[model].get("properties"):
                yield from self.rows_below(entry, model, value if entry == key else {})

    def type_of(self, field: Schema) -> str:
        """Describe the type of a field in words."""
        if "$ref" in field:
            model = self.models[_name(field)]
            return self.type_of(model) if "enum" in model else "settings"
        if "anyOf" in field or "oneOf" in field:
            members = field.get("anyOf", field.get("oneOf", ()))
            return " or ".join(dict.fromkeys(self.type_of(member) for member in members))
        if words := field.get("enum", [field["const"]] if "const" in field else []):
            return "one of " + ", ".join(f"`{word}`" for word in words)
        if field.get("type") == "array":
            return f"list of {self.type_of(field['items'] if 'items' in field else field['prefixItems'][0])}"
        if field.get("type") == "object":
            return "mapping"
        if field.get("type") == "string":
            return "path" if field.get("format") == "path" else "text"
        limits = [
            f"{sign} {field[name]:g}" for name, sign in _LIMITS.items() if abs(field.get(name, 2**31)) < 2**31
        ]
        return ", ".join([_TYPES.get(field.get("type", ""), "any value"), *limits])


def _named_models(field: Any) -> list[str]:
    """Return the names of the models that a field's schema allows, in lists and mappings too."""
    if isinstance(field, Mapping):
        if "$ref" in field:
            return [_name(field)]
        inner = [value for name, value in field.items() if name not in ("default", "discriminator")]
        return _named_models(inner)
    return [name for member in field for name in _named_models(member)] if isinstance(field, list) else []


def _name(reference_to_model: Schema) -> str:
    return str(reference_to_model["$ref"]).rpartition("/")[2]


def _texts(described: Schema) -> list[str]:
    return [" ".join(described["description"].split())] if "description" in described else []


def _chosen_options(base: Path) -> dict[str, Any]:
    """Return the options that the defaults list of `_base.yaml` names, by group."""
    primary = OmegaConf.load(base)
    assert isinstance(primary, DictConfig)
    entries = [entry for entry in primary.defaults if isinstance(entry, Mapping)]
    return {str(group): option for entry in entries for group, option in entry.items()}


def _printed(value: Any) -> str:
    if value == REQUIRED:
        return "*required*"
    text = json.dumps(value, ensure_ascii=False)
    text = text.strip('"') if isinstance(value, str) and value else text
    return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


def _table(rows: list[SettingRow]) -> str:
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| `{key}` | {' | '.join(row)} |" for key, *row in cells]
    return "\n".join(["| key | type | default | meaning |", "| --- | --- | --- | --- |", *lines])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(Path(__file__).parents[1] / "conf"), encoding="utf-8")
