"""`monitorbench COMMAND …`: which command is meant, and the list of them all."""

import sys
import textwrap
from collections.abc import Callable, Sequence

import monitorbench
from monitorbench.cli.stage import imported
from monitorbench.cli.stages import STAGES
from monitorbench.config.base import ConfigError
from monitorbench.config.ending import reporting
from monitorbench.config.load import did_you_mean

_GROUPS = {
    "to begin": ("choose", "init", "doctor"),
    "data": ("mirror", "build", "audit", "annotate", "label", "queue", "elicit", "export"),
    "monitors": ("evaluate", "wording", "views", "stress", "train", "fit", "merge", "push", "serve"),
    "answers": ("import", "calibrate", "score", "combine", "control", "recommend", "transfer", "report"),
    "afterwards": ("gate", "pilot"),
    "runs": ("view", "runs", "verify"),
    "this command": ("completion",),
}


_OTHERS: dict[str, tuple[str, Callable[[Sequence[str]], int]]] = {
    "runs": (
        "List the runs, show, compare, remove or export some.",
        imported("monitorbench.runs.command:main"),
    ),
    "init": ("Begin a project: a folder with settings of one's own.", imported("monitorbench.cli.init:main")),
    "completion": (
        "Print what makes a shell complete commands and settings.",
        lambda arguments: imported("monitorbench.cli.help:complete")(arguments, commands()),
    ),
}


def main() -> None:
    """Run the command that the process was started with; the exit code is its own."""
    name, arguments = (sys.argv[1], sys.argv[2:]) if sys.argv[1:] else ("", [])
    with reporting():
        if name in STAGES:
            sys.argv = [f"monitorbench {name}", *arguments]
            STAGES[name]()
        elif name == "--version":
            print(monitorbench.__version__)
        elif name in ("", "-h", "--help", "help"):
            print(overview())
            raise SystemExit(0 if name else 2)
        elif name in _OTHERS:
            raise SystemExit(_OTHERS[name][1](arguments))
        else:
            expected = did_you_mean(name, commands()) or "`monitorbench --help` lists them"
            raise ConfigError(f"monitorbench {name}: no such command; {expected}")


def commands() -> list[str]:
    """The names of all commands."""
    return [*STAGES, *_OTHERS]


def overview() -> str:
    """All commands with what they do, in 80 columns."""
    said = {name: stage.text.splitlines()[0] for name, stage in STAGES.items()}
    said |= {name: text for name, (text, _) in _OTHERS.items()}
    lines = ["monitorbench COMMAND key=value …    which monitor to deploy, at which threshold", ""]
    for group, names in _GROUPS.items():
        lines.append(f"{group}:")
        lines += [
            textwrap.fill(
                said[name],
                80,
                initial_indent=f"  {name:<11}",
                subsequent_indent=" " * 13,
                break_long_words=False,
            )
            for name in names
        ]
    return "\n".join([*lines, "", "`monitorbench COMMAND --help` says what a command takes."])
