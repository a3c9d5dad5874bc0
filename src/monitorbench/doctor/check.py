"""One line of the doctor's table, and the table: eighty columns, with what to do below what failed."""

import textwrap
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

State = Literal["ok", "failed", "skipped"]
WIDTH = 80
_NAME, _STATE = 20, 9


class Check(NamedTuple):
    """What was looked at, how it is, and what a person does about it."""

    name: str
    state: State
    found: str
    do: str = ""
    """Of a failed one."""

    def as_json(self) -> dict[str, Any]:
        """For the file beside the table."""
        return self._asdict()


def table(checks: Sequence[Check]) -> str:
    """Lines of at most `WIDTH` characters: name, state, what was found; what to do behind an arrow."""
    indent = " " * (_NAME + _STATE)
    lines = [f"{'check':<{_NAME}}{'state':<{_STATE}}found", "-" * WIDTH]
    for check in checks:
        head = f"{check.name:<{_NAME}}{check.state:<{_STATE}}"
        text = " ".join(check.found.split())
        lines += textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=indent) or [head.rstrip()]
        if check.do:
            lines += textwrap.wrap(
                check.do, WIDTH, initial_indent=f"{indent}-> ", subsequent_indent=f"{indent}   "
            )
    return "\n".join(lines)
