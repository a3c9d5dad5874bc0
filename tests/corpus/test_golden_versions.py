"""Declared versions are what names datasets: no behavior changes without its version.

`golden_versions.json` holds, for each source and construction and for the corpus, the declared version and
the hash of what it makes of a small input. It needs no mirror: the inputs are made up (`golden_inputs.py`).
"""

import json
from pathlib import Path

import pytest
from golden_behavior import digest, made_by, placements

from monitorbench.corpus.selection import CORPUS_VERSION
from monitorbench.sources.all import SOURCES

TABLE = Path(__file__).with_name("golden_versions.json")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """Version and hash of everything, as the code is now."""
    folder = tmp_path_factory.mktemp("golden")
    table: dict[str, list[object]] = {
        name: [version, digest(make())] for name, version, make in made_by(folder)
    }
    table["corpus"] = [CORPUS_VERSION, digest(placements())]
    return table


def test_everything_that_makes_samples_is_in_the_table(found: dict[str, list[object]]):
    """A source that is not in it could change its rows, and old datasets would pass for new ones."""
    assert list(found) == list(json.loads(TABLE.read_text()))
    made = {name for source in SOURCES.values() for name in source.constructions}
    assert made <= set(found), "a declared construction without a golden input"


@pytest.mark.parametrize("name", json.loads(TABLE.read_text()))
def test_no_behavior_changes_without_its_version(found: dict[str, list[object]], name: str):
    """Else a dataset built by the old code is reused for the new one, under the same name."""
    version, expected = json.loads(TABLE.read_text())[name]
    declared, now = found[name]
    if now != expected and declared == version:
        pytest.fail(
            f"the behavior of {name} changed: raise its version and update this line of {TABLE.name}: "
            f'"{name}": [{version + 1}, "{now}"]'
        )
    assert [declared, now] == [version, expected], f'update {TABLE.name}: "{name}": [{declared}, "{now}"]'
