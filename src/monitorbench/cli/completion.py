"""Completion: what the shell asks while a command is typed, and the lines that make it ask.

Settings and their options are completed by Hydra's own completion (`--shell-completion`), which knows the
composed tree; this module only adds the names of the commands.
"""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout

from monitorbench.cli.stages import STAGES
from monitorbench.config.base import ConfigError

_ASK = "MONITORBENCH_COMPLETE"
SCRIPTS = {
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


def main(arguments: Sequence[str], commands: Sequence[str]) -> int:
    """Do `monitorbench completion`: with `bash`, `zsh` or `fish` print the lines for that shell.

    With `words` it answers a shell, with `values` one that takes what stands before `=` for a word.
    """
    if list(arguments) in (["words"], ["values"]):
        offered = words(os.environ.get(_ASK, ""), commands)
        if arguments[0] == "values":
            offered = [word.partition("=")[2] or word for word in offered]
        print("\n".join(offered))
        return 0
    if len(arguments) != 1 or arguments[0] not in SCRIPTS:
        raise ConfigError(
            f"monitorbench completion {' '.join(arguments)}: expected bash, zsh or fish, as in "
            'eval "$(monitorbench completion bash)"'
        )
    print(SCRIPTS[arguments[0]])
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
