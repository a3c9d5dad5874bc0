"""From the entries of `monitors=[…]` to a study for each: what judges, and with which prompt."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.load import read_frozen
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import judge_name

Compose = Callable[[Sequence[str]], Study]
"""The study of what was typed, with more overrides behind it."""

_EXPECTED = "expected a monitor's name, NAME:PROMPT, a .jsonl file of verdicts, or a training run"


def candidates(study: Study, compose: Compose, known: Sequence[str]) -> list[Study]:
    """A study for each of `study.monitors`, in their order; `known` are the names of configured monitors.

    Raises `ConfigError` for an entry that is none of what may stand there, and for two of one name.
    """
    if not study.monitors:
        raise ConfigError(f"monitors=[]: nothing to choose from; {_EXPECTED}, as monitors=[a,b]")
    found = [_candidate(entry, compose, known) for entry in study.monitors]
    names = Counter((judge_name(one), _prompt(one)) for one in found)
    twice = [name for name, n in names.items() if n > 1]
    if twice:
        raise ConfigError(
            f"monitors: two of them are {twice[0][0]} with prompt {twice[0][1]}; expected each once"
        )
    return found


def _prompt(study: Study) -> str:
    return "recorded" if study.monitor.verdicts else study.prompt.name


def _candidate(entry: str, compose: Compose, known: Sequence[str]) -> Study:
    path = Path(entry)
    if path.suffix == ".jsonl":
        return _recorded(entry, path, compose)
    if (path / "config.json").is_file():
        trained = read_frozen(path / "config.json").monitor
        ours = compose([])
        return ours.model_copy(update={"monitor": trained.model_copy(update={"adapter": path})})
    name, _, prompt = entry.partition(":")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        expected = f"did you mean {near[0]}?" if near else f"{_EXPECTED}; configured are {', '.join(known)}"
        raise ConfigError(f"monitors: {entry}: no such monitor; {expected}")
    return compose([f"monitor={name}", *([f"prompt={prompt}"] if prompt else [])])


def _recorded(entry: str, path: Path, compose: Compose) -> Study:
    """A file of recorded verdicts, which is named as the file is, without `verdicts-`."""
    if not path.is_file():
        raise ConfigError(f"monitors: {entry}: no such file; {_EXPECTED}")
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", path.stem.removeprefix("verdicts-"))[:80] or "recorded"
    quoted = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return compose(["monitor=recorded", f"monitor.verdicts='{quoted}'", f"monitor.name='{name}'"])
