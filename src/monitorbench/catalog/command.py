"""`monitorbench runs`: list, show, compare, remove and export what is in the folder of runs.

A RUN is a path, `latest`, `@NAME` or `@NAME/SPLIT` (such as `@smollm2_135m-direct/test`, the newest), or how
its folder's name or its id begins.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from rich.text import Text

from monitorbench.catalog.found import KINDS, ON_THE_WAY, Run, State, read_run, runs_in
from monitorbench.catalog.listing import chosen, console, listed, print_list
from monitorbench.catalog.selectors import ANY_RUN, COMPARED, Wanted, find
from monitorbench.config.base import UserError
from monitorbench.config.ending import reporting


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what a command line says; the exit code, or `SystemExit` with one line on stderr."""
    given = _parser().parse_args(arguments)
    with reporting():
        try:
            given.do(given)
            sys.stdout.flush()
        except BrokenPipeError:  # `| head` has seen enough; what is left can't be flushed at the end either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _list(given: argparse.Namespace) -> None:
    kinds = given.kind or [kind for kind in KINDS if kind not in ON_THE_WAY]
    found = chosen(runs_in(given.runs, kinds), given.text, given.state, given.n)
    if given.json:
        _print_json([listed(run) for run in found])
    elif found:
        print_list(console(), found)
    else:
        raise UserError(f"{given.runs}: no such run there; expected a folder of runs as --runs DIR")


def _show(given: argparse.Namespace) -> None:
    from monitorbench.catalog.details import details, in_words

    found = details(_run(given, given.run), given.runs)
    if given.json:
        _print_json(found)
    else:
        console().print(Text(in_words(found)), soft_wrap=True)


def _compare(given: argparse.Namespace) -> None:
    from monitorbench.catalog.comparison import compared, print_comparison

    first, second = (_run(given, name, COMPARED) for name in (given.first, given.second))
    found = compared(first, second, given.data)
    if given.json:
        _print_json(found)
    else:
        print_comparison(console(), found)


def _remove(given: argparse.Namespace) -> None:
    from monitorbench.catalog.removal import remove

    def agreed(question: str) -> bool:
        if given.yes:
            return True
        if not sys.stdin.isatty():
            raise UserError("nobody to ask whether to remove; add --yes")
        print(f"{question} [y/N] ", end="", flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    for path in remove(given.runs, given.run, force=given.force, agreed=agreed):
        print(f"removed {path}")


def _export(given: argparse.Namespace) -> None:
    from monitorbench.catalog.archive import export

    made = export(_run(given, given.run), given.output, verdicts=given.verdicts)
    for name in made.redacted:
        print(f"a key was removed from {name}", file=sys.stderr)
    print(made.file)


def _run(given: argparse.Namespace, name: str, wanted: Wanted = ANY_RUN) -> Run:
    path = find(given.runs, name, wanted)
    kind = path.resolve().parent.name
    if not path.is_dir() or kind not in KINDS:
        raise UserError(f"{path}: no such run; expected one of `monitorbench runs list`")
    return read_run(path, kind)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _parser() -> argparse.ArgumentParser:
    described = argparse.ArgumentParser(
        prog="monitorbench runs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = described.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, do: Any, about: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=about, description=about)
        made.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="default: runs")
        made.set_defaults(do=do)
        return made

    listing = command("list", _list, "Show which runs there are, the newest first.")
    listing.add_argument("text", nargs="*", help="only runs that have each of these in their name")
    listing.add_argument("--kind", action="append", choices=KINDS, help="may be given again")
    listing.add_argument("--state", action="append", choices=get_args(State), help="may be given again")
    listing.add_argument("-n", type=int, help="at most so many")

    showing = command("show", _show, "Show what a run is, its settings, results and files.")
    showing.add_argument("run", metavar="RUN")

    comparing = command("compare", _compare, "Show what differs between two runs: settings, MR, FAR, AUROC.")
    comparing.add_argument("first", metavar="A")
    comparing.add_argument("second", metavar="B")
    comparing.add_argument("--data", type=Path, default=Path("data"), metavar="DIR", help="default: data")
    for one in (listing, showing, comparing):
        one.add_argument("--json", action="store_true", help="as JSON")

    removing = command("rm", _remove, "Remove runs that no other run was made from.")
    removing.add_argument("run", nargs="+", metavar="RUN")
    removing.add_argument("--yes", action="store_true", help="don't ask")
    removing.add_argument("--force", action="store_true", help="even where another run was made from it")

    exporting = command("export", _export, "Put report, metrics, settings and manifest into one zip.")
    exporting.add_argument("run", metavar="RUN")
    exporting.add_argument("-o", "--output", type=Path, metavar="FILE.zip", help="default: RUN.zip, here")
    exporting.add_argument("--verdicts", action="store_true", help="with the judge's answers")
    return described


if __name__ == "__main__":
    raise SystemExit(main())
