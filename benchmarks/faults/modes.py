"""The ways in which an endpoint misbehaves, by group and by name."""

from benchmarks.faults.modes_http import STATUS, TRANSPORT
from benchmarks.faults.modes_replies import BODIES, ECHOES, NUMBERS
from benchmarks.faults.wire import Mode, slugs

GROUPS: dict[str, dict[str, Mode]] = {
    "status": slugs(STATUS),
    "transport": slugs(TRANSPORT),
    "body": slugs(BODIES),
    "numbers": slugs(NUMBERS),
    "key": slugs(ECHOES),
}
MODES: dict[str, Mode] = {name: mode for members in GROUPS.values() for name, mode in members.items()}
