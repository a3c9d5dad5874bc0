"""Studies from the entries of `monitors=[…]`, one for each: what judges, and with which prompt.

Importing this costs nothing heavy, so that a mistyped name is refused at once.
"""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.load import read_frozen
from monitorbench.config.study import Study
from monitorbench.untrusted import TABLES

Compose = Callable[[Sequence[str]], Study]
"""Composes the study of what was typed, with more overrides behind it."""

_EXPECTED = "expected a monitor's name, NAME:PROMPT, a file of verdicts, or a training run"


def candidate_studies(monitors: Sequence[str], compose: Compose, configured: Sequence[str]) -> list[Study]:
    """The study of each entry of `monitors=[…]`, in their order.

    Raises `ConfigError` for an entry that is no monitor, and for two of one name.
    """
    if not monitors:
        raise ConfigError(f"monitors=[]: nothing to choose from; {_EXPECTED}, as 'monitors=[a,b]'")

    @cache  # composing takes a third of a second
    def composed(*overrides: str) -> Study:
        return compose(overrides)

    studies = [_candidate(entry, composed, configured) for entry in monitors]
    from monitorbench.judging.evaluate import judge_name  # takes seconds, which a typo must not cost

    names = Counter(
        (judge_name(study.monitor, study.engine), prompt_name(study.monitor.verdicts, study.prompt.name))
        for study in studies
    )
    for (judge, prompt), n in names.items():
        if n > 1:
            raise ConfigError(f"monitors: two of them are {judge} with prompt {prompt}; expected each once")
    return studies


def prompt_name(verdicts: Path | None, prompt: str) -> str:
    """The name of the prompt that a candidate is asked with; recorded verdicts have none."""
    return "recorded" if verdicts else prompt


def _candidate(entry: str, composed: Callable[..., Study], configured: Sequence[str]) -> Study:
    path = Path(entry)
    if entry.lower().endswith(TABLES):
        return _recorded(path, composed)
    if (path / "config.json").is_file():
        base = read_frozen(path / "config.json").monitor
        return composed().model_copy(update={"monitor": base.model_copy(update={"adapter": path})})
    name, _, prompt = entry.partition(":")
    if name not in configured:
        near = difflib.get_close_matches(name, configured, n=1)
        expected = f"did you mean {near[0]}?" if near else f"{_EXPECTED}; configured are "
        names = "" if near else ", ".join(configured)
        raise ConfigError(f"monitors: {entry}: no such monitor; {expected}{names}")
    return composed(f"monitor={name}", *([f"prompt={prompt}"] if prompt else []))


def _recorded(path: Path, composed: Callable[..., Study]) -> Study:
    """The study of recorded verdicts, whose monitor has the file's name without `verdicts-`."""
    if not path.is_file():
        raise ConfigError(f"monitors: {path}: no such file; {_EXPECTED}")
    ending = max((end for end in TABLES if path.name.lower().endswith(end)), key=len)
    stem = path.name[: -len(ending)].removeprefix("verdicts-")
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", stem)[:80] or "recorded"
    study = composed("monitor=recorded", "monitor.verdicts=recorded.jsonl")  # the same for every file
    monitor = study.monitor.model_copy(update={"verdicts": path, "name": name})
    return study.model_copy(update={"monitor": monitor})
