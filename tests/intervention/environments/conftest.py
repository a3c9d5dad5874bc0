"""Environments composed from `conf/`, and a few small generated games, made once."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from monitorbench.config.pilot import Environments, TextWorldGames
from monitorbench.config.reference import option

GAMES: list[int] = [3, 4]
"""Seeds of the generated games."""


def _settings(root: Path, name: str, places: dict[str, str | None]) -> Any:
    tree = option("environment", name)
    if tree.get("source") == f"${{source.{name}}}":
        tree["source"] = yaml.safe_load(
            (root / "conf" / "source" / f"{name}.yaml").read_text(encoding="utf-8")
        )
    adapter: TypeAdapter[Any] = TypeAdapter(Environments)
    return adapter.validate_json(json.dumps(tree | {key: places[key] for key in places if key in tree}))


@pytest.fixture(scope="session")
def mirrored(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """`mirrored("hotpotqa")`: the settings of `conf/environment/hotpotqa.yaml`; skips without a mirror."""

    def found(name: str) -> Any:
        mirror = os.environ.get("MONITORBENCH_SOURCES")
        if not mirror:
            pytest.skip("MONITORBENCH_SOURCES is not set")
        return _settings(root, name, {"mirror": mirror, "cache": str(tmp_path_factory.mktemp("cache"))})

    return found


@pytest.fixture(scope="session")
def generated(root: Path, tmp_path_factory: pytest.TempPathFactory) -> TextWorldGames:
    """`conf/environment/textworld.yaml` with smaller games, of which those of `GAMES` are made."""
    pytest.importorskip("textworld")
    from monitorbench.intervention.environments.textworld_games import ensure_games

    whole = _settings(root, "textworld", {"games": str(tmp_path_factory.mktemp("games"))})
    settings: TextWorldGames = whole.model_copy(update={"rooms": 2, "objects": 4, "quest_length": 3})
    ensure_games(settings, GAMES)
    return settings
