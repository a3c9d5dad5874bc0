"""The page of all settings, `docs/settings.md`, from the JSON schema of the models.

    python -m monitorbench.config.reference docs/settings.md

Promises: every key that a study may have is on the page, once for each kind of its group, with its type, its
default and the text that stands below its field.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from monitorbench.config.defaults import REQUIRED, defaults, option
from monitorbench.config.study import Study

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
        schema["$defs"], {model: name for name in _LINKED for model in _models(schema["properties"][name])}
    )
    settings = defaults(Study)
    chosen = _chosen_options(conf / "_base.yaml")
    top, sections = list[SettingRow](), list[str]()
    for name, field in schema["properties"].items():
        names = [] if name == "source" else sorted(file.stem for file in (conf / name).glob("*.yaml"))
        if not _models(field):
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
        (model,) = _models(field)
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
        for model in _models(field):
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
            first = first_of.setdefault(tuple(_models(field)) or (name,), name)
            if first != name and "anyOf" not in field:
                meaning = " ".join([*_texts(field), f"Its settings are those of `{prefix}.{first}`."])
                yield SettingRow(f"{prefix}.{name}", "settings", "", meaning)
                continue
            default = field.get("default", REQUIRED)
            value = values.get(name, default) if isinstance(values, Mapping) else default
            yield from self.rows(f"{prefix}.{name}", field, value)

    def rows(self, key: str, field: Schema, value: Any) -> Iterator[SettingRow]:
        """Yield the row of a field, and those of the settings below it."""
        models = _models(field)
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


def _models(field: Any) -> list[str]:
    """Return the names of the models that a field's schema allows, in lists and mappings too."""
    if isinstance(field, Mapping):
        if "$ref" in field:
            return [_name(field)]
        inner = [value for name, value in field.items() if name not in ("default", "discriminator")]
        return _models(inner)
    return [name for member in field for name in _models(member)] if isinstance(field, list) else []


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
