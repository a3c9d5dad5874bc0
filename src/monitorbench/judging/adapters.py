"""Several adapters, or prompts, of one base, judged one after another in a single start of the engine.

Each is a run of its own, the one that judging it alone gives: found again, resumed, with the same verdicts.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import Engine, LocalEngine, in_process
from monitorbench.config.monitor import Monitor
from monitorbench.config.study import Study
from monitorbench.engines.open import share_engine
from monitorbench.engines.stored.adapter import adapter_folder
from monitorbench.judging.evaluate import evaluate
from monitorbench.judging.open import open_judge


def evaluate_each(study: Study) -> Path:
    """Judge with `monitor.adapter`, then with each of `adapters`; returns the last one's run.

    The others' runs are printed, a line each. Raises what `evaluate` raises, with what was judged until then
    kept, and `ConfigError` for an adapter that is named twice or is to go behind an endpoint.
    """
    if study.monitor.head_beside is not None:
        from monitorbench.judging.probe import evaluate_pair

        return evaluate_pair(study)
    several = by_adapter(study.monitor, study.adapters)
    if len(several) == 1:
        return evaluate(study)
    if study.monitor.router is not None:
        raise ConfigError("adapters: a router takes the place of adapters; expected one of them")
    if study.monitor.verdicts is not None:
        raise ConfigError("adapters: recorded verdicts have none; expected a model")
    engine = in_process(study.engine, "adapters")
    adapters = [monitor.adapter for monitor in several]
    with one_start(study.monitor, engine, study.paths.models, adapters) as judged:
        *others, last = (study.model_copy(update={"adapters": (), "monitor": of}) for of in several)
        for variant in others:
            print(judged(variant), flush=True)
        return judged(last)


@contextmanager
def one_start(
    monitor: Monitor, engine: LocalEngine, models: Path, adapters: Sequence[Path | None]
) -> Iterator[Callable[[Study], Path]]:
    """`evaluate`, for studies of this monitor with any of the adapters and any prompt, on one engine.

    It is loaded with the first question of any of them.
    """
    folders = [folder for adapter in adapters if (folder := adapter_folder(adapter))]
    with closing(share_engine(monitor, engine, models, folders)) as shared:
        yield partial(evaluate, opens=partial(open_judge, shared=shared))


@contextmanager
def judging_in_one_start(monitor: Monitor, engine: Engine, models: Path) -> Iterator[Callable[[Study], Path]]:
    """`evaluate`, for studies of this monitor with any prompt: on one engine where it is in this process."""
    if not engine.takes_token_ids:
        yield evaluate
        return
    with one_start(monitor, in_process(engine, "several prompts"), models, [monitor.adapter]) as judge:
        yield judge


def by_adapter(monitor: Monitor, more: Sequence[Path]) -> list[Monitor]:
    """The monitor with its own adapter, and with each of `more`; `ConfigError` where one is there twice."""
    adapters = [monitor.adapter, *more]
    if twice := [path for number, path in enumerate(adapters) if path in adapters[:number]]:
        raise ConfigError(f"adapters: {twice[0]} is there twice; expected each once")
    return [monitor.model_copy(update={"adapter": adapter}) for adapter in adapters]
