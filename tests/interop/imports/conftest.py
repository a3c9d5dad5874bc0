"""Importing a file without a process of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from score_files import Import

from monitorbench.config.study import Study
from monitorbench.interop.imports.stage import import_scores


@pytest.fixture
def into(tmp_path: Path, compose_study: Callable[..., Study]) -> Callable[..., Study]:
    """A study whose data and runs lie in the test's own folder."""

    def composed(stage: str, *overrides: str) -> Study:
        return compose_study(stage, f"paths.data={tmp_path}/data", f"paths.runs={tmp_path}/runs", *overrides)

    return composed


@pytest.fixture
def importing(into: Callable[..., Study]) -> Import:
    """`import_scores` of a file with overrides; returns the run it prints."""

    def imported(file: Path | str, *overrides: str) -> Path:
        return import_scores(into("import", f"from={file}", *overrides))

    return imported
