"""Studies from the entries of `monitors=[…]`, one for each: what judges, and with which prompt.

Importing this costs nothing heavy, so that a mistyped name is refused at once.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import yaml

from monitorbench.config.base import ConfigError
from monitorbench.config.imports import Import
from monitorbench.config.load import did_you_mean, read_frozen
from monitorbench.config.monitor import Monitor
from monitorbench.config.project import option_file, options
from monitorbench.config.study import Study
from monitorbench.untrusted import TABLES

Compose = Callable[[Sequence[str]], Study]
"""Composes the study of what was typed, with more overrides behind it."""

_EXPECTED = "expected a monitor's name, NAME:PROMPT, a file of verdicts, or a training run"


def candidate_studies(study: Study, compose: Compose, trees: Sequence[Path]) -> list[Study]:
    """The study of each entry of `monitors=[…]`, in their order; `trees` hold the configured monitors.

    Raises `ConfigError` for an entry that is no monitor.
    """
    if not study.monitors:
        raise ConfigError(f"monitors=[]: nothing to choose from; {_EXPECTED}, as 'monitors=[a,b]'")

    @cache  # composing takes a third of a second
    def composed(*overrides: str) -> Study:
        return compose(overrides)

    candidates = []
    for entry in study.monitors:
        path = Path(entry)
        if entry.lower().endswith(TABLES):
            monitor = _recorded(path, study.monitor.read_as, trees)
        elif (path / "config.json").is_file():
            monitor = read_frozen(path / "config.json").monitor.model_copy(update={"adapter": path})
        else:
            candidates.append(_configured(entry, composed, trees))
            continue
        candidates.append(study.model_copy(update={"monitor": monitor}))
    return candidates


def refuse_twins(candidates: Sequence[Study]) -> None:
    """Raise `ConfigError` for two candidates of one name and prompt."""
    from monitorbench.judging.evaluate import judge_name  # takes seconds, which a typo must not cost

    names = Counter(
        (judge_name(one.monitor, one.engine), prompt_name(one.monitor.verdicts, one.prompt.title))
        for one in candidates
    )
    for (judge, prompt), n in names.items():
        if n > 1:
            raise ConfigError(f"monitors: two of them are {judge} with prompt {prompt}; expected each once")


def prompt_name(verdicts: Path | None, prompt: str) -> str:
    """The name of the prompt that a candidate is asked with; recorded verdicts have none."""
    return "recorded" if verdicts else prompt


def _configured(entry: str, composed: Callable[..., Study], trees: Sequence[Path]) -> Study:
    """The study of `NAME` or `NAME:PROMPT`; `ConfigError` where no monitor is called so."""
    name, _, prompt = entry.partition(":")
    if name not in (configured := options("monitor", trees)):
        expected = did_you_mean(name, configured) or f"{_EXPECTED}; configured are {', '.join(configured)}"
        raise ConfigError(f"monitors: {entry}: no such monitor; {expected}")
    return composed(f"monitor={name}", *([f"prompt={prompt}"] if prompt else []))


def _recorded(path: Path, read_as: Import, trees: Sequence[Path]) -> Monitor:
    """The monitor of recorded verdicts, which has the file's name without `verdicts-`."""
    if not path.is_file():
        raise ConfigError(f"monitors: {path}: no such file; {_EXPECTED}")
    ending = max((end for end in TABLES if path.name.lower().endswith(end)), key=len)
    stem = path.name[: -len(ending)].removeprefix("verdicts-")
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", stem)[:80] or "recorded"
    file = option_file("monitor", "recorded", trees)
    assert file is not None, "the package has conf/monitor/recorded.yaml"
    stated = yaml.safe_load(file.read_text("utf-8"))
    return Monitor.model_validate({**stated, "name": name, "verdicts": path, "read_as": read_as})
