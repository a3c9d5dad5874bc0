"""The help of a stage, and completion: what may be typed, told on a page or to a shell.

The help is the stage's text, the settings that it reads with a sentence each, and the experiments; Hydra's
own help reads the tree once for every group, which takes seconds. Settings and their options are completed by
Hydra's own completion (`--shell-completion`), which knows the composed tree; the names of the commands and
the lines that make a shell ask are added here.
"""

import io
import itertools
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from monitorbench.cli.stage import Stage
from monitorbench.cli.stages import STAGES
from monitorbench.config.base import ConfigError, field_texts
from monitorbench.config.project import option_file, options, trees_of
from monitorbench.config.study import Study

_WIDTH = 80
_LONG = 60
"""Characters up to which a list of defaults fits into a line, behind its key."""


def help_text(stage: Stage) -> str:
    """The help of a stage in 80 columns."""
    trees = trees_of(stage.conf)
    experiments = options("experiment", trees)
    return "\n".join(
        [
            *(
                (text if text.startswith("    ") else textwrap.fill(" ".join(text.split()), _WIDTH)) + "\n"
                for text in stage.text.strip().split("\n\n")
            ),
            f"Settings that {stage.name} reads, with their defaults:",
            *(line for key in stage.reads.split() for line in _setting(key, trees)),
            *([_line("plan=false", field_texts(Study)["plan"])] if stage.plan or stage.runs else []),
            "",
            "Experiments, each a file of settings for some stages:",
            *(_line(f"experiment={name}", _comment(name, trees)) for name in experiments),
            "",
            "docs/settings.md has every setting; --cfg job shows the values, -m sweeps.",
        ]
    )


def _setting(key: str, trees: Sequence[Path]) -> Iterator[str]:
    """The lines on a top-level setting: a group with its options, or each key below it."""
    name, field = next(
        (name, field) for name, field in Study.model_fields.items() if key in (name, field.alias)
    )
    kind: object = field.annotation
    model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
    text = field_texts(Study).get(name) or (model.__doc__ if model else "") or ""
    if names := [option for option in options(key, trees) if not option.startswith("_")]:
        yield _line(f"{key}=NAME", text)
        yield textwrap.fill(", ".join(names), _WIDTH, initial_indent="    ", subsequent_indent="    ")
    elif model is not None:
        texts = field_texts(model)
        for inner, inner_field in model.model_fields.items():
            inner_key = f"{key}.{inner_field.alias or inner}"
            yield _line(f"{inner_key}{_default(inner_field)}", texts.get(inner, ""))
    else:
        yield _line(f"{key}{_default(field)}", text)


def _default(field: FieldInfo) -> str:
    """A default as it would be typed; just `=` where it is required, long, or has parts of its own."""
    value: Any = None if field.is_required() else field.get_default(call_default_factory=True)
    if field.is_required() or isinstance(value, BaseModel | dict):
        return "="
    match value:
        case None:
            return "=null"
        case bool():
            return f"={value}".lower()
        case tuple():
            typed = f"=[{','.join(map(str, value))}]"
            return typed if len(typed) <= _LONG else "="
        case _:
            return f"={value}"


def _line(key: str, text: str) -> str:
    """A key with the first sentence of its text."""
    sentence = " ".join(text.split()).partition(". ")[0].rstrip(".:;")
    return textwrap.fill(
        f"{key}  {sentence}".rstrip(),
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _comment(experiment: str, trees: Sequence[Path]) -> str:
    """The description of an experiment: the comments at the top of its file, without what Hydra reads."""
    file = option_file("experiment", experiment, trees)
    lines = file.read_text(encoding="utf-8").splitlines() if file else []
    comments = itertools.takewhile(lambda line: line.startswith("#"), lines)
    return " ".join(line.removeprefix("#").strip() for line in comments if "@package" not in line)


_ASK = "MONITORBENCH_COMPLETE"
_SHELLS = {
    "bash": f"""\
_monitorbench() {{
  local IFS=$'\\n'
  COMPREPLY=($({_ASK}="${{COMP_LINE:0:$COMP_POINT}}" monitorbench completion values 2>/dev/null))
}}
complete -o nospace -o default -F _monitorbench monitorbench""",
    "zsh": f"""\
_monitorbench() {{
  compadd -S '' -- ${{(f)"$({_ASK}="$words[1,$CURRENT]" monitorbench completion words 2>/dev/null)"}}
}}
compdef _monitorbench monitorbench""",
    "fish": f"""\
complete -c monitorbench -f -a '({_ASK}=(commandline -cp) monitorbench completion words 2>/dev/null)'""",
}


def complete(arguments: Sequence[str], commands: Sequence[str]) -> int:
    """Do `monitorbench completion`: with `bash`, `zsh` or `fish` print the lines for that shell.

    With `words` it answers a shell, with `values` one that takes what stands before `=` for a word.
    """
    if list(arguments) in (["words"], ["values"]):
        offered = words(os.environ.get(_ASK, ""), commands)
        if arguments[0] == "values":
            offered = [word.partition("=")[2] or word for word in offered]
        print("\n".join(offered))
        return 0
    if len(arguments) != 1 or arguments[0] not in _SHELLS:
        raise ConfigError(
            f"monitorbench completion {' '.join(arguments)}: expected bash, zsh or fish, as in "
            'eval "$(monitorbench completion bash)"'
        )
    print(_SHELLS[arguments[0]])
    return 0


def words(line: str, commands: Sequence[str]) -> list[str]:
    """List what may stand in place of the last word of a line such as `monitorbench evaluate prom`."""
    typed = line.split(" ")[1:]
    if len(typed) <= 1:
        return [f"{name} " for name in commands if name.startswith("".join(typed))]
    stage = STAGES.get(typed[0])
    if stage is None:
        return []
    os.environ["COMP_LINE"] = " ".join(["monitorbench", *typed[1:]])  # where Hydra's completion looks
    sys.argv = ["monitorbench", "--shell-completion", "query=bash"]
    with redirect_stdout(io.StringIO()) as offered, redirect_stderr(io.StringIO()):
        stage()
    return offered.getvalue().split()
