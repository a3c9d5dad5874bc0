"""`monitorbench runs`: list, show, compare, remove and export what is in the folder of runs.

A RUN is a path, `latest`, `@NAME` or `@NAME/SPLIT` (such as `@smollm2_135m-direct/test`, the newest), or how
its folder's name or its id begins.
"""

import argparse
import io
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple, get_args

from rich.text import Text

from monitorbench.config.base import UserError
from monitorbench.config.ending import printable, reporting
from monitorbench.config.secrets import SHORTEST_SECRET, secret_values
from monitorbench.config.terminal import opened
from monitorbench.runs.directory import KINDS, LOGS, checked_file
from monitorbench.runs.files import DIRECTORY_LOCK, is_locked, locked, part_of, unwritable, write_atomically
from monitorbench.runs.listing import chosen, details, in_words, listed, print_list, size, size_in_words
from monitorbench.runs.run_folders import Run, State, read_run, runs_in
from monitorbench.runs.selectors import ANY_RUN, COMPARED, Wanted, find, readers, settings

_ON_THE_WAY = ("episodes", "baselines")
"""Kinds that other stages make for themselves; listed only where asked for."""
_RESULTS = (
    *("report*", "samples*", "*.html", "*.csv", "metrics*.json", "config.json", "manifest.json"),
    *("learning_curve.json", "operating_point.json", "decision.json"),
)
"""Files of a run's folder, and folders, that are always taken. Never `server.json`, which may have a key."""
_ANSWERS = ("*.jsonl",)
"""Files that are taken by choice: they hold answers of models, and name or quote what was judged."""
_REMOVED = b"(removed)"
_BEGIN = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can tell."""
_UNIX = 3
"""System that every zip names, so that it is the same on all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what a command line says; the exit code, or `SystemExit` with one line on stderr."""
    options = _parser().parse_args(arguments)
    with reporting():
        options.do(options)
    return 0


def _list(options: argparse.Namespace) -> None:
    kinds = options.kind or [kind for kind in KINDS if kind not in _ON_THE_WAY]
    runs = chosen(runs_in(options.runs, kinds), options.text, options.state, options.n)
    if options.json:
        _print_json([listed(run, options.data) for run in runs])
    elif runs:
        print_list(opened(), runs, options.data)
    else:
        n = len(runs_in(options.runs))
        if not n:
            raise UserError(f"{options.runs}: no run there; expected a folder of runs as --runs DIR")
        none = f"none of the {n} runs matches" if n > 1 else "the one run there does not match"
        raise UserError(f"{options.runs}: {none}; expected other words, or another --kind or --state")


def _show(options: argparse.Namespace) -> None:
    run = details(_run(options, options.run), options.runs, options.data)
    if options.json:
        _print_json(run)
    else:
        opened().print(Text(in_words(run)), soft_wrap=True)


def _compare(options: argparse.Namespace) -> None:
    from monitorbench.runs.comparison import compared, print_comparison

    first, second = (_run(options, name, COMPARED) for name in (options.first, options.second))
    comparison = compared(first, second, options.data)
    if options.json:
        _print_json(comparison)
    else:
        print_comparison(opened(), comparison)


def _remove(options: argparse.Namespace) -> None:
    def agreed(question: str) -> bool:
        if options.yes:
            return True
        if not sys.stdin.isatty():
            raise UserError("nobody to ask whether to remove; add --yes")
        print(printable(f"{question} [y/N] "), end="", flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    for path in remove(options.runs, options.run, force=options.force, agreed=agreed):
        print(printable(f"removed {path}"))


def _export(options: argparse.Namespace) -> None:
    exported = export(_run(options, options.run), options.output, verdicts=options.verdicts)
    for name in exported.redacted:
        print(printable(f"a key was removed from {name}"), file=sys.stderr)
    print(printable(str(exported.file)))


def _run(options: argparse.Namespace, name: str, wanted: Wanted = ANY_RUN) -> Run:
    path = find(options.runs, name, wanted)
    kind = path.resolve().parent.name
    if not path.is_dir() or kind not in KINDS:
        raise UserError(f"{path}: no such run; expected one of `monitorbench runs list`")
    return read_run(path, kind)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))  # in ASCII: no character that commands a terminal


def remove(folder: Path, names: Sequence[str], *, force: bool, agreed: Callable[[str], bool]) -> list[Path]:
    """Remove the runs that short names mean, once `agreed` to the question; returns their folders.

    A run is removed whole or not at all, and nothing outside `folder` ever is. All are looked at before the
    first is removed. Raises `UserError` for one that is no run below `folder`, that another run was made from
    (unless `force`), or that is being written; nothing is removed then.
    """
    leaving = list({run.path: run for run in (_inside(folder, name) for name in names)}.values())
    for run in leaving:
        if is_locked(run.path):
            raise UserError(f"{run.path}: a process is writing to it; end that first")
    if not force:
        _refuse_read(leaving, runs_in(folder))
    sizes = {run.path: size(run.path) for run in leaving}
    lines = [f"  {run.path} ({run.state}, {size_in_words(sizes[run.path])})" for run in leaving]
    total = size_in_words(sum(sizes.values()))
    if not agreed("\n".join([*lines, f"remove {len(leaving)} run{'s'[: len(leaving) > 1]}, {total}?"])):
        return []
    for run in leaving:
        # The lock's file goes along; whoever waits for it then makes the run anew.
        with locked(run.path / DIRECTORY_LOCK):
            renamed = part_of(run.path)
            try:
                run.path.rename(renamed)
                shutil.rmtree(renamed)  # which removes links, and never follows them
            except OSError as error:
                raise unwritable(run.path, error) from error
    return [run.path for run in leaving]


def _inside(folder: Path, name: str) -> Run:
    path = find(folder, name)
    kind = path.parent.name
    is_below = kind in KINDS and path.resolve().parent == folder.resolve() / kind
    if path.is_symlink() or not path.is_dir() or not is_below or path.name in ("", "."):
        reason = "a link, not a run" if path.is_symlink() else "no run of this folder"
        raise UserError(
            f"{path}: {reason}; expected a run below {folder}, such as {folder / 'evaluate' / 'NAME-HASH'}"
        )
    return read_run(path, kind)


def _refuse_read(leaving: Sequence[Run], everything: Sequence[Run]) -> None:
    """Raise `UserError` for a run that one which stays was made from."""
    gone = {run.path.resolve() for run in leaving}
    staying = [run for run in everything if run.path.resolve() not in gone]
    for run in leaving:
        if made_from_it := readers(run, staying):
            first = made_from_it[0]
            more = f" and {len(made_from_it) - 1} more" if len(made_from_it) > 1 else ""
            were = "were" if more else "was"
            raise UserError(
                f"{run.path}: {first.kind}/{first.path.name}{more} {were} made from it; remove that "
                "as well, or add --force"
            )


class Exported(NamedTuple):
    """A zip that was written."""

    file: Path
    names: list[str]
    redacted: list[str]
    """Files in which a key was found and replaced."""


def export(run: Run, target: Path | None, *, verdicts: bool) -> Exported:
    """Write a run's results to a zip: `target`, or in the folder `target`, or `<name>.zip` here.

    Keys that the environment holds are replaced where a file has them; settings hold none.
    Raises `UserError` for a file that is not as it was written, or where there is nothing to export.
    """
    name = f"{run.path.name}.zip"
    file = target / name if target is not None and target.is_dir() else target or Path(name)
    secrets = list(_secrets(run))
    buffer, names, redacted = io.BytesIO(), list[str](), list[str]()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in _files(run.path, (*_RESULTS, *(_ANSWERS if verdicts else ()))):
            inner = path.relative_to(run.path).as_posix()
            content = _content(run, path, inner)
            cleaned = content
            for secret in secrets:
                cleaned = cleaned.replace(secret, _REMOVED)
            if cleaned != content:
                redacted.append(inner)
            entry = zipfile.ZipInfo(f"{run.path.name}/{inner}", _BEGIN)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, _UNIX
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, cleaned)
            names.append(inner)
    if not names:
        raise UserError(f"{run.path}: no results in it; expected a run that a stage wrote")
    write_atomically(file, buffer.getvalue())
    return Exported(file, names, redacted)


def _files(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    """The files whose name, or whose folder's name in the run, is of a pattern; links are left out."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        fits = any(fnmatch(parts[0], pattern) for pattern in patterns)
        is_linked = any(folder.joinpath(*parts[: i + 1]).is_symlink() for i in range(len(parts)))
        if fits and not is_linked and path.is_file() and not any(name.startswith(".") for name in parts):
            yield path


def _content(run: Run, path: Path, inner: str) -> bytes:
    if inner in run.manifest.get("files", {}) and path.name not in LOGS:
        checked_file(run.path, inner)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror or error})") from error


def _secrets(run: Run) -> Iterator[bytes]:
    variable = settings(run).get("engine", {}).get("api_key_env")
    key = os.environ.get(variable, "").strip() if variable else ""
    if len(key) >= SHORTEST_SECRET:
        yield key.encode()
    yield from (value.encode() for value in secret_values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="monitorbench runs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, do: Callable[[argparse.Namespace], None], about: str, *, prints: bool = True
    ) -> argparse.ArgumentParser:
        subparser = commands.add_parser(name, help=about, description=about)
        subparser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="default: runs")
        if prints:
            subparser.add_argument(
                "--data", type=Path, default=Path("data"), metavar="DIR", help="default: data"
            )
            subparser.add_argument("--json", action="store_true", help="as JSON")
        subparser.set_defaults(do=do)
        return subparser

    listing = command("list", _list, "Show which runs there are, the newest first.")
    listing.add_argument("text", nargs="*", help="only runs that have each of these in their name")
    listing.add_argument("--kind", action="append", choices=list(KINDS), help="may be given again")
    listing.add_argument("--state", action="append", choices=get_args(State), help="may be given again")
    listing.add_argument("-n", type=int, help="at most so many")

    showing = command("show", _show, "Show what a run is, its settings, results and files.")
    showing.add_argument("run", metavar="RUN")

    comparing = command("compare", _compare, "Show what differs between two runs: settings, MR, FAR, AUROC.")
    comparing.add_argument("first", metavar="A")
    comparing.add_argument("second", metavar="B")

    removing = command("rm", _remove, "Remove runs that no other run was made from.", prints=False)
    removing.add_argument("run", nargs="+", metavar="RUN")
    removing.add_argument("--yes", action="store_true", help="don't ask")
    removing.add_argument("--force", action="store_true", help="even where another run was made from it")

    exporting = command(
        "export", _export, "Put report, metrics, settings and manifest into one zip.", prints=False
    )
    exporting.add_argument("run", metavar="RUN")
    exporting.add_argument("-o", "--output", type=Path, metavar="FILE.zip", help="default: RUN.zip, here")
    exporting.add_argument("--verdicts", action="store_true", help="with the judge's answers")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
