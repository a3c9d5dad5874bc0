"""Roles of a file's columns: those that were named, and those of the usual names.

Promises: a column that was named is there, or the import ends with the nearest name; what was found by itself
is said.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import
from monitorbench.config.load import did_you_mean


class ImportedColumns(NamedTuple):
    """The columns that an import reads."""

    names: Mapping[str, str]
    """Column names by role, `score` left out."""
    scores: Mapping[str, str]
    """Column of scores by monitor; the monitor is "" where a column names it, or none does."""
    files: Mapping[str, str] = {}
    """Name of the files with a monitor's rows, for monitors that are not in all files."""


def find_columns(
    present: Sequence[str],
    settings: Import,
    clashing: Collection[str] = (),
    files: Collection[str] = (),
    *,
    labelled: bool = True,
) -> ImportedColumns:
    """Find the columns that an import reads; `clashing` are names that several columns have.

    `files` are the names that `FILE/COLUMN` may begin with. Of files that are not `labelled` the column of
    labels is what the monitor said, unless another one is. Raises `UserError` where one that was named is
    not there or there twice, or where no score or label can be found, `ConfigError` where two settings say
    which monitors there are.
    """
    configured = settings.columns.named()
    wanted = [*configured.values(), *(settings.monitors or {}).values()]
    wanted += [name for usual in settings.columns.looked_for().values() for name in usual]
    below = tuple(name[:-1] for name in wanted if name.endswith(".*"))
    if twice := [name for name in clashing if name in wanted or (below and name.startswith(below))]:
        raise UserError(
            f"two columns are called {twice[0]} (a field with a dot in its name, and one inside another); "
            "rename one"
        )
    by_role: dict[str, str] = {}
    for role, name in configured.items():
        if not (role == "score" and name.endswith(".*")) and name not in present:
            raise UserError(absent_column(f"import.columns.{role}={name}", name, present))
        by_role[role] = name
    before = ["", *(f"{action}." for action in settings.actions)]
    for role, usual in settings.columns.looked_for().items():
        candidates = [
            f"{prefix}{name}" for prefix in before for name in usual if f"{prefix}{name}" in present
        ]
        if candidates:
            by_role[role] = candidates[0]
    scores, of_file = _scores(present, settings, by_role, files)
    if not labelled and "label" in by_role:
        by_role = {"flagged": by_role["label"], **by_role}
    if not scores and "flagged" not in by_role:
        raise UserError(_unnamed_column("score", "scores", present))
    if labelled and "label" not in by_role and "step_label" not in by_role:
        message = _unnamed_column("label", "labels", present)
        raise UserError(f"{message}; labels of another file are joined by import.labels=FILE")
    if len(scores) > 1 and "flagged" in by_role:
        raise UserError(
            f"import.columns.flagged={by_role['flagged']}: of which of {len(scores)} monitors? "
            "expected import.columns.flagged='' with a column of scores a monitor"
        )
    by_role.pop("score", None)
    return ImportedColumns(by_role, scores, of_file)


def _scores(
    present: Sequence[str], settings: Import, found: dict[str, str], files: Collection[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The columns and the files of each monitor."""
    column = found.get("score", "")
    if settings.monitors is not None:
        scores, of_file = {}, {}
        for name, source in settings.monitors.items():
            file, _, in_file = source.partition("/")
            if source not in present and file in files:
                of_file[name] = file
                source = in_file
            if source not in present:
                raise UserError(absent_column(f"import.monitors.{name}={source}", source, present))
            scores[name] = source
        found.pop("monitor", None)
        return scores, of_file
    if column.endswith(".*"):
        below = {name.removeprefix(column[:-1]): name for name in present if name.startswith(column[:-1])}
        if not below:
            raise UserError(absent_column(f"import.columns.score={column}", column[:-2], present))
        if "monitor" in settings.columns.named():
            raise ConfigError(
                f"import.columns.score={column}: its fields name the monitors; expected "
                "import.columns.monitor=''"
            )
        found.pop("monitor", None)
        return below, {}
    return ({"": column} if column else {}), {}


def _unnamed_column(role: str, what: str, present: Sequence[str]) -> str:
    """One line on a column that nobody named, and that no usual name finds."""
    setting = f"import.columns.{role}"
    return absent_column(setting, role, present).replace(
        "no such column;", f"no column has a usual name for {what}; expected {setting}=COLUMN;"
    )


def unread_names(present: Sequence[str], used: Collection[str]) -> str:
    """Name the columns that nothing was taken from, the first six; empty where there is none."""
    unread = [shown_name(name) for name in present if name not in used]
    more = f" and {len(unread) - 6} more" if len(unread) > 6 else ""
    return ", ".join(unread[:6]) + more


def shown_name(name: str) -> str:
    """A column's name for messages, quoted where it is empty or would break the line."""
    return name if name and name.isprintable() else repr(name)


def absent_column(said: str, name: str, present: Sequence[str]) -> str:
    """One line on a column that was asked for by `said` and is not there, with the nearest name."""
    listing = ", ".join(map(shown_name, present[:20])) or "none"
    if len(present) > 20:
        listing += f" and {len(present) - 20} more"
    nearest = did_you_mean(name, list(present))
    if "*" in name:  # `scores.*`, whose fields are looked for elsewhere
        nearest = "several monitors are import.monitors={NAME:COLUMN,NAME:COLUMN};"
    return f"{said}: no such column; {nearest}{' ' if nearest else ''}there are {listing}"
