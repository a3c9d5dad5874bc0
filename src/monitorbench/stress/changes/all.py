"""Every change, in the order in which it is tried and shown."""

from collections.abc import Sequence

from monitorbench.config.base import ConfigError
from monitorbench.config.load import did_you_mean
from monitorbench.stress.changes.change import Change, family
from monitorbench.stress.changes.code import CODE
from monitorbench.stress.changes.insertions import INJECTIONS, OWN_WORDS
from monitorbench.stress.changes.options import OPTIONS
from monitorbench.stress.changes.padding import PADDING
from monitorbench.stress.changes.prose import LOOKALIKES, PARAPHRASES

CHANGES: tuple[Change, ...] = (
    *INJECTIONS,
    *PADDING,
    *OPTIONS,
    *OWN_WORDS,
    *PARAPHRASES,
    *CODE,
    *LOOKALIKES,
)
EVERYTHING = "all"


def chosen(names: Sequence[str]) -> list[Change]:
    """The changes of these names, families (`padding`) or parts of them (`padding.2k`), in the order of all.

    Raises `ConfigError` for a name that is of none.
    """
    wanted: set[str] = set()
    for name in names:
        matches = {
            change.name
            for change in CHANGES
            if name == EVERYTHING or f"{change.name}.".startswith(f"{name}.")
        }
        if not matches:
            candidates = [
                *dict.fromkeys(family(change.name) for change in CHANGES),
                *(change.name for change in CHANGES),
            ]
            families = ", ".join(dict.fromkeys(family(change.name) for change in CHANGES))
            near = did_you_mean(name, candidates, "") or f"expected {EVERYTHING} or one of {families}"
            raise ConfigError(f"stress.changes={name}: no such change; {near}")
        wanted |= matches
    return [change for change in CHANGES if change.name in wanted]
