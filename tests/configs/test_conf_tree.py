"""Every YAML under conf/ composes and validates, on every script that could be given it.

The primary files are shown to be one and the same tree; then one of them speaks for all.
"""

import json
import re
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from studies import composed

from monitorbench.config.load import load
from monitorbench.config.reference import base_of, defaults
from monitorbench.config.sources import Source, SourceFile
from monitorbench.config.study import Prompt, Study
from monitorbench.sources.all import SOURCES as DECLARED
from monitorbench.sources.archive import REPACKED

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
FILLED = {
    "dataset.path": "mine.jsonl",
    "engine.server": "mine",
}
"""A value for every `???` that an option leaves to the person."""
FORMS = {"vllm_gpu": "vllm"}
"""Options that are another for one kind of machine, and the kind that they are."""
FILES = sorted(
    file.relative_to(CONF)
    for file in CONF.rglob("*")
    if file.is_file() and file.relative_to(CONF).parts[0] not in ("local", "__init__.py", "__pycache__")
)
PRIMARIES = [file.stem for file in FILES if len(file.parts) == 1 and not file.name.startswith("_")]
SOURCES = [file.stem for file in FILES if file.parts[0] == "source"]
"""They compose all together, below their names."""
OPTIONS = [
    (file.parent.as_posix(), file.stem)
    for file in FILES
    if len(file.parts) > 1 and file.parts[0] not in ("experiment", "hydra", "source")
]
EXPERIMENTS = [
    file.relative_to("experiment").with_suffix("").as_posix()
    for file in FILES
    if file.parts[0] == "experiment"
]
SCRIPTS = sorted(
    script for folder in ("data_build", "train", "eval") for script in (ROOT / folder).glob("*.py")
)


def _yaml(*path: str) -> Any:
    return yaml.safe_load(CONF.joinpath(*path).read_text(encoding="utf-8"))


def _rows() -> list[dict[str, str]]:
    """Choices for all groups at once, so that few trees have every option in one of them."""
    groups = {group: [name for _, name in some] for group, some in groupby(OPTIONS, lambda option: option[0])}
    count = max(map(len, groups.values()))
    rows = [{group: names[row % len(names)] for group, names in groups.items()} for row in range(count)]
    for row in rows:
        # One foresees failures, and guards have their own policy: each is refused with another.
        if row["prompt"] == "failure" or _yaml("prompt", f"{row['prompt']}.yaml").get("kind") == "guard":
            row["policy"] = "built_in"
        if "ledger" in (row["prompt"], row["unit"]):  # each is for the other
            row["unit"] = "ledger" if row["prompt"] == "ledger" else "trajectory"
    return rows


ROWS = _rows()


@cache
def validated(*overrides: str) -> Study:
    """The study of any stage and `overrides`, with a value for whatever they leave missing."""
    cfg = composed("build", *overrides)
    for key in OmegaConf.missing_keys(cfg):
        OmegaConf.update(cfg, key, FILLED[key])
    if cfg.monitor.kind == "recorded":
        cfg.monitor.verdicts = "verdicts.jsonl"
    return load(cfg)


def test_no_file_of_the_tree_is_left_out():
    """A config in a place or with an ending that no test composes could be broken for months."""
    covered = {Path("_base.yaml")}
    covered |= {Path(f"{name}.yaml") for name in PRIMARIES}
    covered |= {Path(group) / f"{option}.yaml" for group, option in OPTIONS}
    covered |= {Path("source") / f"{name}.yaml" for name in SOURCES}
    covered |= {Path("experiment") / f"{name}.yaml" for name in EXPERIMENTS}
    assert set(FILES) == covered
    assert {(group, name) for row in ROWS for group, name in row.items()} == set(OPTIONS)


def test_every_group_is_a_field_of_the_study():
    """An option folder that no model reads is a setting that silently does nothing."""
    assert {group for group, _ in OPTIONS} <= {*Study.model_fields, *Prompt.model_fields}


def test_every_script_has_a_primary_file_and_the_other_way_round():
    """A script without its config can't start; a config without a script is a dead promise."""
    named = [re.search(r'^main = STAGES\["(\w+)"\]', script.read_text(), re.M) for script in SCRIPTS]
    assert all(named), [script for script, name in zip(SCRIPTS, named, strict=True) if not name]
    found = [name[1] for name in named if name]
    assert sorted(found) == sorted([*PRIMARIES, "export"]), "export is of datasets, and of runs"


def test_a_primary_file_is_the_whole_tree():
    """A default hidden in one script's own file makes the stages of a study run under unlike settings."""
    for primary in PRIMARIES:
        assert _yaml(f"{primary}.yaml") == {"defaults": ["_base"]}, primary
    assert set(_yaml("_base.yaml")) == {"defaults", "hydra"}, "a default has its home on a field"


# --- a default is written once -----------------------------------------------------------------------------


def _repeated(own: Any, below: Any, key: str) -> list[str]:
    """The keys that a file sets to the value that they have without it."""
    if isinstance(own, dict) and isinstance(below, dict):
        return [
            again
            for name in own.keys() & below
            for again in _repeated(own[name], below[name], f"{key}.{name}")
        ]
    return [key] if own == below else []


def _hydra_yaml(*path: str) -> Any:
    # YAML's own readers take 4e-4 for text.
    return OmegaConf.to_container(OmegaConf.load(CONF.joinpath(*path).with_suffix(".yaml")), resolve=False)


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_no_option_repeats_a_default(group: str, option: str):
    """Of a value that stands in two places a reader changes one, and the other is what runs."""
    own = _hydra_yaml(group, option)
    below = OmegaConf.to_container(base_of(group, own.pop("defaults", [])))
    assert _repeated(own, below, group) == []


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_no_experiment_repeats_a_default(experiment: str):
    """If it failed: an experiment would seem to choose what every study has."""
    own = _hydra_yaml("experiment", *experiment.split("/"))
    chosen = [
        f"{group.removeprefix('override /')}={option}"
        for entry in own.pop("defaults", [])
        for group, option in entry.items()
    ]
    below = OmegaConf.to_container(composed("build", *(one for one in chosen if not one.startswith("hydra"))))
    own.pop("hydra", None)
    assert _repeated(own, below, "") == []


@pytest.mark.parametrize("name", SOURCES)
def test_no_source_repeats_a_default(name: str):
    """If it failed: what a source says would seem to be of that source."""
    own = _yaml("source", f"{name}.yaml")
    repeated = [key for file in own["files"] for key in _repeated(file, defaults(SourceFile), "files")]
    assert repeated + _repeated(own, defaults(Source), name) == []


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_every_option_composes(row: dict[str, str]):
    """An option that does not compose breaks a study half-way through."""
    choices = [f"{group}={option}" for group, option in row.items()]
    missing = OmegaConf.missing_keys(composed("build", *choices))
    own = {"dataset.path"} if row["dataset"] in ("jsonl", "inspect_log") else set()
    served = {"engine.server"} if row["engine"] == "served" else set()
    assert missing == own | served, "asked for is what is somebody's own, and nothing else"
    study = validated(*choices)
    for group, option in row.items():
        chosen = getattr(study, group, None) or getattr(study.prompt, group)
        named = getattr(chosen, "name", getattr(chosen, "kind", option))
        assert FORMS.get(option, option) in (named, "default"), f"{group}={option} calls itself {named}"


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_experiment_is_sparse_and_asks_for_no_value(experiment: str):
    """One that repeats whole groups hides what it changes; a `???` asks for what is never used."""
    text = (CONF / "experiment" / f"{experiment}.yaml").read_text()
    assert text.startswith("# @package _global_\n")
    assert len(text.splitlines()) <= 25
    assert isinstance(yaml.safe_load(text), dict)
    assert validated(f"experiment={experiment}")
    for choices in ((), (f"experiment={experiment}",)):
        assert OmegaConf.missing_keys(composed("evaluate", *choices)) == set()


# --- sources -------------------------------------------------------------------------------------------


def test_every_source_is_there():
    """A source whose file nothing includes can't be named by any dataset, and nobody would notice."""
    assert set(validated(*(f"{g}={o}" for g, o in ROWS[0].items())).source) == set(SOURCES)


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_says_where_each_file_is_and_at_which_revision(name: str):
    """A file without a pin is another file tomorrow; a path out of the mirror reads what it should not."""
    source = Source.model_validate_json(json.dumps(_yaml("source", f"{name}.yaml")))
    assert source.licence.strip()
    if source.origin == "none":
        assert all(file.mirror for file in source.files), "had from nowhere at all"
    else:
        # A commit by its first digits is enough where a checksum pins what is made of its archive.
        is_made = all(file.sha256 and not file.path for file in source.files)
        digits = "{8,40}" if is_made else "{40}"
        assert re.fullmatch(f"[0-9a-f]{digits}", source.revision), "not pinned to a commit"
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", source.repo)
        made = [file for file in source.files if not file.path]
        assert all(file.members or file.mirror in REPACKED for file in made), "not to be had without a mirror"
    for file in source.files:
        for place in filter(None, (file.path, file.mirror)):
            assert not Path(place).is_absolute()
            assert ".." not in Path(place).parts
        assert file.path or file.mirror
        # Where no one could look the checksum up, the commit at least names the content of a download.
        assert file.sha256 or source.origin != "none", f"{file.mirror}: nothing checks its content"
    assert len({(file.path, file.mirror) for file in source.files}) == len(source.files)


def test_every_declared_source_has_its_file():
    """A declaration without its YAML, or the other way round for a dataset's source, is never read."""
    declared = {name for name, source in DECLARED.items() if source.installed is None}
    assert declared <= set(SOURCES)
    assert set(_yaml("dataset", "paper.yaml")["sources"]) <= set(DECLARED)


def test_the_papers_datasets_name_known_sources():
    """A source that exists in the dataset's list only ends a build after an hour, or never counts."""
    paper, local = (_yaml("dataset", f"{name}.yaml")["sources"] for name in ("paper", "paper_local"))
    packaged = {name for name, source in DECLARED.items() if source.installed is not None}
    assert set(paper) - set(SOURCES) <= packaged, "neither in conf/source nor in a package"
    left_out = {name for name, value in local.items() if value is None}
    assert left_out <= {name for name, value in paper.items() if value}, "left out twice"
    assert set(local) - left_out == {"reflexion"}, "a substitute leaves out, and adds a model's own failures"
    with_mirror = set(SOURCES) - {n for n in SOURCES if _yaml("source", f"{n}.yaml")["origin"] == "hub"}
    used = {name for name, value in paper.items() if value} - left_out
    assert used - packaged <= with_mirror, "a source that only a hub has"
