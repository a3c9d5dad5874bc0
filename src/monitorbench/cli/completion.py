"""Completion: what the shell asks while a command is typed, and the lines that make it ask.

Settings and their options are completed as Hydra's own completion does it, from the composed tree.
"""

import os
import sys
from collections.abc import Sequence

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
    """`monitorbench completion bash|zsh|fish` prints the lines.

    With `words` it answers a shell, with `values` one that takes what stands before `=` for a word.
    """
    if list(arguments) in (["words"], ["values"]):
        found = words(os.environ.get(_ASK, ""), commands)
        print("\n".join(one.partition("=")[2] or one if arguments[0] == "values" else one for one in found))
        return 0
    if len(arguments) != 1 or arguments[0] not in SCRIPTS:
        raise ConfigError(
            f"monitorbench completion {' '.join(arguments)}: expected bash, zsh or fish, as in "
            'eval "$(monitorbench completion bash)"'
        )
    print(SCRIPTS[arguments[0]])
    return 0


def words(line: str, commands: Sequence[str]) -> list[str]:
    """What may stand in place of the last word of a command line such as `monitorbench evaluate prom`."""
    typed = line.split(" ")[1:]
    if len(typed) <= 1:
        return [f"{name} " for name in commands if name.startswith("".join(typed))]
    stage = STAGES.get(typed[0])
    if stage is None:
        return []
    from hydra._internal.core_plugins.bash_completion import BashCompletion
    from hydra.core.global_hydra import GlobalHydra

    from monitorbench.config.project import composing

    stderr, sys.stderr = sys.stderr, open(os.devnull, "w")  # noqa: SIM115
    try:
        with composing(stage.conf):
            hydra = GlobalHydra.instance().hydra
            assert hydra is not None
            found = BashCompletion(hydra.config_loader)._query(stage.name, " ".join(typed[1:]))
    finally:
        sys.stderr.close()
        sys.stderr = stderr
    return list(found)
