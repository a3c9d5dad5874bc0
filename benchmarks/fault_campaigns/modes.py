"""All ways in which an endpoint misbehaves.

Each takes the connection, the right reply and the one with the opposite answer. Where a client may well
take the answer, it is the right one; where it must not, it is the opposite one, so that a guess shows.
"""

import re

from fault_campaigns.modes_http import STATUS, TRANSPORT
from fault_campaigns.modes_replies import BODIES, ECHOES, NUMBERS
from fault_campaigns.wire import Mode


def _slug(name: str) -> str:
    """A name that a URL and a folder can have."""
    return re.sub(r"[^a-zA-Z0-9.]+", "-", name)


GROUPS: dict[str, dict[str, Mode]] = {
    group: {_slug(name): mode for name, mode in members.items()}
    for group, members in {
        "status": STATUS,
        "transport": TRANSPORT,
        "body": BODIES,
        "numbers": NUMBERS,
        "key": ECHOES,
    }.items()
}
"""By group."""

MODES: dict[str, Mode] = {name: mode for members in GROUPS.values() for name, mode in members.items()}
"""By name."""
