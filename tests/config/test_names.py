"""Names and paths that no file system takes are refused before a stage begins: one line, no traceback."""

import re
from pathlib import Path

import pytest
from studies import study

from monitorbench.config.base import ConfigError

LONG = "n" * 300


@pytest.mark.parametrize(
    "override",
    [
        f"monitor.name={LONG}",
        f"prompt.name={LONG}",
        f"dataset.name={LONG}",
        f"run={LONG}",
        f"paths.runs=/tmp/{LONG}/runs",
        f"monitor.path={LONG}",
        f"monitor.adapter=x/{LONG}",
        f"transfer.runs=[a,{LONG}]",
    ],
)
def test_a_name_of_300_characters_names_its_setting(override: str):
    """`OSError: File name too long`, after a model was loaded, says nothing of the setting."""
    with pytest.raises(ConfigError) as caught:
        study(override, primary="evaluate")
    assert str(caught.value).startswith(override.partition("=")[0])
    assert re.search(r"at most (80|255)", str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a/b", "../up", "a b", "a\\nb"])
def test_a_name_is_no_path(name: str):
    """A run would be written outside the folder of runs."""
    with pytest.raises(ConfigError, match=r"^monitor\.name"):
        study(f"monitor.name='{name}'", primary="evaluate")


def test_names_that_fit_do(tmp_path: Path):
    """The longest of both."""
    assert study(f"monitor.name={'n' * 80}", f"paths.runs={tmp_path}/{'n' * 255}", primary="evaluate")
    with pytest.raises(ConfigError, match=r"paths\.runs.*256 bytes"):
        study(f"paths.runs={tmp_path}/{'n' * 256}", primary="evaluate")
