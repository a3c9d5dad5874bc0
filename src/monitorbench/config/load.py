"""Turn Hydra's composed tree into a `Study`; no other module sees a DictConfig.

`load` raises `ConfigError`, whose text is one line: the key, its value and what was expected.
"""

import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from monitorbench.cells import wrong_subset_of_the_paper
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.datasets import Dataset, OwnDataset, PaperDataset
from monitorbench.config.evaluation import Transfer
from monitorbench.config.secrets import refuse_secrets
from monitorbench.config.study import Study
from monitorbench.untrusted import document


def load(cfg: DictConfig, experiment: str | None = None) -> Study:
    """Validate a composed config. The runs of an `experiment` are one group in W&B, unless it names another.

    Raises:
        ConfigError: for a missing `???`, an unresolvable interpolation, an unknown key, a value of
            the wrong type or out of range.

    """
    try:
        tree = OmegaConf.to_container(cfg, resolve=True)
        _refuse_missing(_missing(tree))
        if experiment:
            _group(tree, experiment)
    except OmegaConfBaseException as error:
        if isinstance(error, InterpolationToMissingValueError):
            _refuse_missing(OmegaConf.missing_keys(cfg))
        key = error.full_key or "config"
        value = OmegaConf.to_container(cfg, resolve=False)
        for name in key.split("."):
            value = value.get(name, "") if isinstance(value, dict) else ""
        reason = str(error).splitlines()[0].removeprefix("KeyError raised while resolving interpolation: ")
        raise ConfigError(
            f"{key}={_quoted(value)}: {reason}; expected a value, or ${{key}} of a setting that has one"
        ) from error
    return validate(json.dumps(tree))


def _refuse_missing(keys: Iterable[str]) -> None:
    if missing := sorted(keys):
        key = missing[0]
        raise ConfigError(f"{key}=???: no value given; expected {key}=VALUE{_more(missing)}")


def _missing(tree: Any, key: str = "") -> Iterator[str]:
    """Yield the keys without a value as OmegaConf names them, whose own search takes as long as all else."""
    if tree == MISSING:
        yield key
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield from _missing(value, f"{key}.{name}" if key else str(name))
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from _missing(value, f"{key}[{i}]")


def _group(tree: Any, experiment: str) -> None:
    """Fill in a `tracking.group` that is null: dataset and experiment."""
    tracking, dataset = tree.get("tracking"), tree.get("dataset")
    if isinstance(tracking, dict) and isinstance(dataset, dict) and tracking.get("group", "") is None:
        tracking["group"] = f"{dataset.get('name')}-{experiment}"


def validate(text: str) -> Study:
    """Return the study that JSON describes; raise `ConfigError` as `load`, and for a key among the
    settings."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        tree = None  # pydantic says what is wrong with it
    refuse_secrets(tree)
    # Strict mode on JSON: lists become tuples and strings paths, but no string becomes a number.
    try:
        study = Study.model_validate_json(text)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        # An unknown key explains better than the required one it was meant to be.
        problems.sort(key=lambda problem: problem["type"] != "extra_forbidden")
        raise ConfigError(_describe(problems[0]) + _more(problems)) from error
    _refuse_impossible_paths(study.model_dump())
    if not isinstance(study.dataset, OwnDataset):
        _refuse_foreign_subsets(study.dataset, study.transfer)
    return study


def _refuse_foreign_subsets(dataset: Dataset, transfer: Transfer) -> None:
    """Raise `ConfigError` for a category or task that only a user's own dataset could have."""
    cells = {*dataset.benchmark_quotas, *dataset.corpus_quotas} if isinstance(dataset, PaperDataset) else ()
    subsets = {f"dataset.{split}.subset": view.subset for split, view in dataset.views.items()}
    subsets["transfer.subsets"] = transfer.subsets
    subsets |= {
        f"transfer.also.{name}.subsets": trainings.subsets for name, trainings in transfer.also.items()
    }
    for key, subset in subsets.items():
        if reason := wrong_subset_of_the_paper(subset, cells):
            quoted = _quoted(subset[0] if len(subset) == 1 else list(subset))
            raise ConfigError(f"{key}={quoted}: {reason}{_nearest(key, subset, reason)}")


_NAME_BYTES = 255
"""Most bytes of one name in a path, on every common file system."""


def _refuse_impossible_paths(value: object, key: str = "") -> None:
    """Raise `ConfigError` for a path that no file can have, before any stage looks for the file."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _refuse_impossible_paths(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, tuple | list):
        for inner in value:
            _refuse_impossible_paths(inner, key)
    elif isinstance(value, Path):
        if "\0" in str(value):
            raise ConfigError(f"{key}={str(value)!r:.60}: a NUL byte in it; expected a path")
        longest = max(map(len, map(os.fsencode, value.parts)), default=0)
        if longest > _NAME_BYTES:
            raise ConfigError(
                f"{key}={str(value)[:40]}…: a name of {longest} bytes in it; expected at most {_NAME_BYTES}"
            )


def unknown_key(key: str, value: str) -> str:
    """Describe a key that is in no model in one line: the keys that its parent has, or the nearest name."""
    if key == "experiment":
        return (
            "experiment: the first line of its file is not `# @package _global_`; expected that line, "
            "without which its settings are of no group"
        )
    *above, name = key.split(".")
    # The first part that leads nowhere is the misspelt one.
    for index, step in enumerate(above if above[:1] != ["hydra"] else []):
        if not _places([*above[:index], step]):
            above, name = above[:index], step
            break
    parent = ".".join(above)
    fields = field_names(above, without=name)
    where = f"{parent!r} has" if parent else "the settings are"
    owners = [] if parent else [group for group in fields if name in field_names([group])]
    nearest = f"did you mean {owners[0]}.{name}?" if len(owners) == 1 else ""
    nearest = nearest or did_you_mean(name, fields, f"{parent}." if parent else "")
    expected = nearest or f"{where}: {', '.join(sorted(fields))}"
    return f"{key}={value}: unknown key {name!r}; {expected}"


def did_you_mean(word: str, names: Sequence[str], before: str = "") -> str:
    """Return `did you mean <before><name>?` for the known name nearest to a word; "" where none is near.

    A name's first word counts as the name: `safty` is near `safety_permission`.
    """
    first_words = {name.partition("_")[0]: name for name in reversed(names)}
    nearest = difflib.get_close_matches(word, names, n=1, cutoff=0.6) or [
        first_words[first] for first in difflib.get_close_matches(word, list(first_words), n=1, cutoff=0.75)
    ]
    return f"did you mean {before}{nearest[0]}?" if nearest else ""


def field_names(path: Sequence[str], without: str = "") -> list[str]:
    """Return the names that may stand below a dotted path; empty where it leads nowhere, or where any name
    may.

    In a union only the models that lack the field `without` count: it was refused in one of these.
    """
    names = [_names(place) for place in _places(path)]
    return sorted({name for placed in names if without not in placed for name in placed})


def _places(path: Sequence[str]) -> list[Any]:
    """Return the models and mappings that a dotted path leads to."""
    places: list[Any] = [Study]
    for name in path:
        places = [inner for place in places for inner in _below(place, name)]
    return places


def _below(place: Any, name: str) -> list[Any]:
    """Return the types that a setting below a type may have."""
    if get_origin(place) is dict:
        inner_names = _names(place)
        return members(get_args(place)[1]) if name in inner_names or not inner_names else []
    by_name = {field.alias or name: field for name, field in place.model_fields.items()}
    return members(by_name[name].annotation) if name in by_name else []


def is_path(key: str) -> bool:
    """Whether a dotted key is of a setting that takes a path, or several."""
    *above, name = key.split(".")
    kinds = [
        get_args(place)[1]
        if get_origin(place) is dict
        else {field.alias or own: field.annotation for own, field in place.model_fields.items()}.get(name)
        for place in _places(above)
    ]
    return any(map(_takes_a_path, kinds))


def _takes_a_path(annotation: Any) -> bool:
    return annotation is Path or any(map(_takes_a_path, get_args(annotation)))


def _names(place: Any) -> list[str]:
    if get_origin(place) is dict:
        return [str(name) for name in get_args(get_args(place)[0])]
    return [field.alias or name for name, field in place.model_fields.items()]


def members(annotation: Any) -> list[Any]:
    """Return the models and mappings that an annotation allows."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [member for argument in get_args(annotation) for member in members(argument)]
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return [annotation] if get_origin(annotation) is dict or is_model else []


def _more(problems: Sequence[object]) -> str:
    return f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""


def _describe(problem: ErrorDetails) -> str:
    location = [str(step) for step in problem["loc"]]
    path = _untagged(location)
    key = ".".join(path) or "config"
    if path[-1:] == ["[key]"]:
        return unknown_key(".".join(path[:-1]), "…")
    if problem["type"] == "extra_forbidden":
        return unknown_key(key, _quoted(problem["input"]))
    if problem["type"] == "json_invalid":
        return f"no JSON ({problem['ctx']['error']}); expected the settings of a study"
    if problem["type"] == "missing":
        return f"{key}=???: no value given; expected {key}=VALUE"
    if problem["type"] == "union_tag_invalid":
        context = problem["ctx"]
        field = context["discriminator"].strip("'")
        tags = context["expected_tags"]
        nearest = _nearest(f"{key}.{field}", context["tag"], tags)
        return f"{key}.{field}={_quoted(context['tag'])}: expected one of {tags}{nearest}"
    expected = problem["msg"].removeprefix("Value error, ").replace("Input should be", "expected", 1)
    if problem["type"] in ("tuple_type", "list_type") and isinstance(problem["input"], str):
        return f"{key}={_quoted(problem['input'])}: expected a list, as {key}=[{_quoted(problem['input'])}]"
    if problem["type"] == "too_short":
        n = problem["ctx"]["min_length"]
        return f"{key}={_quoted(problem['input'])}: expected at least {n} {'entry' if n == 1 else 'entries'}"
    if problem["type"] == "value_error" and isinstance(problem["input"], Mapping):
        # Said of settings that don't go together: the sentence begins with one of them.
        begins_with_setting = re.split(r"[=:]", expected, maxsplit=1)[0] in problem["input"]
        return f"{key}{'.' if begins_with_setting else ': '}{expected}"
    options = expected if problem["type"] in ("literal_error", "enum", "value_error") else ""
    return f"{key}={_quoted(problem['input'])}: {expected}{_nearest(key, problem['input'], options)}"


def _nearest(key: str, value: object, expected: str) -> str:
    """Return `; did you mean key=name?` for the expected names; "" where none is near."""
    text = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
    if not isinstance(text, str):
        return ""
    quoted_or_compound = re.findall(r"'([^']+)'|\b([a-z]+(?:_[a-z]+)+)\b", expected)
    names = [name for pair in quoted_or_compound for name in pair if name and name != text]
    nearest = did_you_mean(text, names, f"{key}=")
    return f"; {nearest}" if nearest else ""


def _untagged(location: Sequence[str]) -> list[str]:
    """Return a problem's location without the tags that pydantic adds after a union, which are no part of a
    key."""
    path: list[str] = []
    at_tag = False
    for step in location:
        if at_tag:
            at_tag = False
            continue
        path.append(step)
        at_tag = len({str(place) for place in _places(path)}) > 1
    return path


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def freeze(study: Study) -> str:
    """Return the text of a frozen study's file; `read_frozen` reads it back as an equal study."""
    return study.model_dump_json(indent=2) + "\n"


def read_frozen(path: Path) -> Study:
    """Read and validate a frozen study, which names every setting: no default takes the place of one.

    Raises:
        ConfigError: for a file that can't be read, is no JSON, is no study, or lacks a setting.

    """
    try:
        text = document(path).decode()
    except (UserError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix(f"{path}: ") if isinstance(error, UserError) else "not UTF-8"
        raise ConfigError(
            f"frozen={path}: {reason}; expected a run-NNN.json of a sweep or a run's config.json"
        ) from error
    try:
        study = validate(text)
    except ConfigError as error:
        raise ConfigError(f"frozen={path}: {error}") from error
    if missing := _first_missing(json.loads(freeze(study)), json.loads(text)):
        raise ConfigError(f"frozen={path}: {missing}=???: no value given; expected the file as it was frozen")
    return study


def _first_missing(whole: Any, given: Any, key: str = "") -> str | None:
    """Find the first key of a tree of settings that `given` lacks, in dots; None where it has all."""
    if not isinstance(whole, Mapping) or not isinstance(given, Mapping):
        return None
    for name, value in whole.items():
        inner = f"{key}.{name}" if key else str(name)
        if name not in given:
            return inner
        if missing := _first_missing(value, given[name], inner):
            return missing
    return None
