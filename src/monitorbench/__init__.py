"""monitorbench: which LLM monitor to deploy, at which threshold, and whether intervening helps.

`rates`, `auroc`, `calibrate`, `compare`, `decide` and `read_runs` are the library: arrays, lists or columns
of a data frame in, a typed result out. They are loaded when they are first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monitorbench.library.comparison import compare
    from monitorbench.library.discrimination import auroc, rates
    from monitorbench.library.pilot import decide
    from monitorbench.library.threshold import calibrate
    from monitorbench.library.verdicts import read_runs

__version__ = "0.1.0"
__all__ = ["auroc", "calibrate", "compare", "decide", "rates", "read_runs"]

_WHERE = {
    "auroc": "discrimination",
    "calibrate": "threshold",
    "compare": "comparison",
    "decide": "pilot",
    "rates": "discrimination",
    "read_runs": "verdicts",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"monitorbench.library.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
