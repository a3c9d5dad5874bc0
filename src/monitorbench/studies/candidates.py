"""Studies from the entries of `monitors=[…]`, one for each: what judges, and with which prompt.

Importing this costs nothing heavy, so that a mistyped name is refused at once.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import yaml

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import
from monitorbench.config.load import did_you_mean, read_frozen
from monitorbench.config.monitor import Monitor
from monitorbench.config.project import option_file, options
from monitorbench.config.study import Study
from monitorbench.runs.directory import kind_of, read_finished
from monitorbench.runs.files import content_hash
from monitorbench.runs.selectors import resolved
from monitorbench.untrusted import TABLES, where_looked

Compose = Callable[[Sequence[str]], Study]
"""Composes the study of what was typed, with more overrides behind it."""

_EXPECTED = "expected a monitor's name, NAME:PROMPT, a file of verdicts, a training run or the fit of a probe"


def candidate_studies(study: Study, compose: Compose, trees: Sequence[Path]) -> list[Study]:
    """The study of each entry of `monitors=[…]`, in their order; `trees` hold the configured monitors.

    Raises `ConfigError` for an entry that is no monitor, `UserError` for a run that did not finish.
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
            recorded = _recorded(path, study.monitor.read_as, trees)
            candidates.append(study.model_copy(update={"monitor": recorded}))
        elif (path / "config.json").is_file():
            candidates.append(_trained(path, study))
        else:
            candidates.append(resolved(_configured(entry, composed, trees), "evaluate"))
    return candidates


def refuse_twins(candidates: Sequence[Study]) -> None:
    """Raise `ConfigError` for two candidates of one name and prompt, and for two names of one judge.

    It is raised as well for a probe of another monitor or prompt, and for one beside a model. A candidate
    whose weights or files are not here is compared by its name alone.
    """
    from monitorbench.judging.evaluate import judge_name  # takes seconds, which a typo must not cost
    from monitorbench.judging.identity import judge_identity
    from monitorbench.judging.serving.served import reach

    names: set[tuple[str, str]] = set()
    judges: dict[str, str] = {}
    for candidate in candidates:
        study = reach(candidate, waits=False)
        verdicts, router = study.monitor.verdicts, study.monitor.router
        judge, prompt = judge_name(study.monitor, study.engine), prompt_name(verdicts, study.prompt.title)
        if (judge, prompt) in names:
            raise ConfigError(f"monitors: two of them are {judge} with prompt {prompt}; expected each once")
        names.add((judge, prompt))
        if study.monitor.head_beside is not None:
            raise ConfigError(
                f"monitor.head_beside={study.monitor.head_beside}: `choose` judges with each monitor alone; "
                "expected null, and the probe as an entry of monitors"
            )
        with suppress(UserError):  # its own stage says what is missing
            if study.monitor.head is not None:
                from monitorbench.judging.probe import fitting_head

                fitting_head(study.monitor, study.prompt)
            of_judge = judge_identity(study.monitor, study.engine, study.prompt)
            identity = content_hash([of_judge, router.model_dump(mode="json") if router else None])
            if twin := judges.get(identity):
                raise ConfigError(
                    f"monitors: {twin} and {judge} are one judge under two names (the same model, prompt and "
                    "settings); expected each once"
                )
            judges[identity] = judge


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


def _trained(run: Path, study: Study) -> Study:
    """The study of a training's adapter, or of a fitted probe, which has the prompt of its fit.

    Raises `UserError` for a run that did not finish, `ConfigError` for one of another kind.
    """
    frozen, identity = read_frozen(run / "config.json"), read_finished(run)["identity"]
    if "head" in identity:
        probe = frozen.monitor.model_copy(update={"head": run})
        return study.model_copy(update={"monitor": probe, "prompt": frozen.prompt.of_whole_responses})
    if "training" in identity:
        tuned = frozen.monitor.model_copy(update={"adapter": run})
        return study.model_copy(update={"monitor": tuned})
    raise ConfigError(f"monitors: {run}: {kind_of(run)}; {_EXPECTED}")


def _recorded(path: Path, read_as: Import, trees: Sequence[Path]) -> Monitor:
    """The monitor of recorded verdicts, which has the file's name without `verdicts-`."""
    if not path.is_file():
        raise ConfigError(f"monitors: {path}: no such file{where_looked(path)}; {_EXPECTED}")
    ending = max((end for end in TABLES if path.name.lower().endswith(end)), key=len)
    stem = path.name[: -len(ending)].removeprefix("verdicts-")
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", stem)[:80] or "recorded"
    file = option_file("monitor", "recorded", trees)
    assert file is not None, "the package has conf/monitor/recorded.yaml"
    stated = yaml.safe_load(file.read_text("utf-8"))
    return Monitor.model_validate({**stated, "name": name, "verdicts": path, "read_as": read_as})
