"""What is typed behind a stage's name, for Hydra: flags, overrides, sweeps, and the refusal of wrong ones.

A refusal is one line: key, value, and what was expected. Nothing is read out of Hydra's messages. Overrides
and the defaults lists of experiment files are compared with the groups and settings that exist; what is left
is told by the exceptions' own fields.
"""

import itertools
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from hydra.conf import HydraConf
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    KeyValidationError,
    OmegaConfBaseException,
)

from monitorbench.config.base import ConfigError
from monitorbench.config.ending import installing
from monitorbench.config.load import did_you_mean, field_names, is_path, unknown_key
from monitorbench.config.project import groups, option_file, options, repeated_key, trees_of

_log = logging.getLogger(__name__)

_TAKE_A_VALUE = frozenset(
    "--config-dir -cd --config-path -cp --config-name -cn --package -p --cfg -c --experimental-rerun".split()
)
"""Flags of Hydra's whose value follows, which may look like an override."""
_MAY_TAKE_A_VALUE = frozenset({"--info", "-i", "--shell-completion", "-sc"})
"""Flags of Hydra's that may have a value behind them."""

PRINTING = frozenset(
    "--cfg -c --info -i --shell-completion -sc --hydra-help --version --experimental-rerun".split()
)
"""Flags of Hydra's with which it composes nothing that is run."""


def split_flags(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Overrides, and Hydra's flags with their values: its parser takes overrides only in one row."""
    overrides, flags = list[str](), list[str]()
    before = ""
    for argument in arguments:
        is_value = before in _TAKE_A_VALUE or (before in _MAY_TAKE_A_VALUE and "=" not in argument)
        (flags if is_value or argument.startswith("-") else overrides).append(argument)
        before = "" if is_value else argument
    return overrides, flags


def flag_value(arguments: Sequence[str], *names: str) -> str | None:
    """The value of a flag, behind it or behind its `=`; of a flag given twice the last, None without it."""
    value = None
    for argument, following in itertools.pairwise([*arguments, ""]):
        name, is_joined, joined = argument.partition("=")
        if name in names:
            value = joined if is_joined else following
    return value


_NUMBER = re.compile(
    r"""('(?:\\.|[^'])*'|"(?:\\.|[^"])*"|(?:range|interval)\([^)]*\))"""
    r"""|((?:^|[\[(,])\s*)([+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?)(?=\s*(?:$|[\]),]))"""
)
"""A number that stands alone in a value, behind what is left as it is: quoted text, and ranges of a sweep."""


def with_quoted_paths(overrides: Sequence[str]) -> list[str]:
    """The overrides, with quotes around what Hydra would take for a number where a setting is a path.

    A run's hash may read as one: `13351221`, or `13351221e163`, of which Hydra would keep six digits.
    """

    def quoted(word: str) -> str:
        key, equals, value = word.partition("=")
        changed = _NUMBER.sub(lambda found: found[1] or f"{found[2]}'{found[3]}'", value)
        return f"{key}={changed}" if equals and changed != value and is_path(key.lstrip("+")) else word

    return [quoted(word) for word in overrides]


def is_searching(settings: HydraConf) -> bool:
    """Whether these settings of Hydra's are of a sweep whose sweeper wants a value of each run."""
    target = str(settings.sweeper["_target_"])
    return settings.mode is RunMode.MULTIRUN and not target.endswith(".BasicSweeper")


def run_overrides(overrides: Sequence[str], params: Mapping[str, str] | None = None) -> list[list[str]]:
    """The overrides of each run that a grid sweep comes to, in the order of Hydra's basic sweeper.

    `params` are those of `hydra.sweeper.params`. A pattern (`glob`) is looked up where Hydra is initialised.
    Raises Hydra's `OverrideParseException` for what it can't read, `HydraException` for an interval.
    """
    values = {
        override.get_key_element(): _values(override)
        for override in _parsed([*(f"{key}={value}" for key, value in (params or {}).items()), *overrides])
    }
    return [list(words) for words in itertools.product(*values.values())]


def first_run(overrides: Sequence[str]) -> list[str]:
    """The overrides of a sweep's first run; what a search would draw from an interval is left out."""
    searched = [override.input_line for override in _parsed(overrides) if _is_interval(override)]
    return run_overrides([word for word in overrides if word not in searched])[0]


def _is_interval(override: Override) -> bool:
    return override.is_sweep_override() and not override.is_discrete_sweep()


def _values(override: Override) -> list[str]:
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if _is_interval(override):
        raise HydraException(f"{override.input_line}: no grid; expected choice(…) or range(…)")
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def _parsed(overrides: Sequence[str]) -> list[Override]:
    hydra = GlobalHydra.instance()
    loader = hydra.config_loader() if hydra.is_initialized() else None
    return list(OverridesParser.create(config_loader=loader).parse_overrides(list(overrides)))


def _readable(overrides: Sequence[str]) -> list[Override]:
    """Read some overrides as Hydra does; nothing where it can't read them."""
    try:
        return _parsed(overrides)
    except HydraException:
        return []


def announce(settings: HydraConf, typed: Sequence[str]) -> None:
    """Say before a sweep's run which one it is: `run 2 of 4, seed=1`."""
    if settings.mode is not RunMode.MULTIRUN:
        return
    params = settings.sweeper.get("params") or {}
    typed = [word for word in typed if not word.startswith("hydra")]
    swept = {override.get_key_element() for override in _parsed(typed) if override.is_sweep_override()}
    swept |= set(params)
    own = [word for word in settings.overrides.task if word.partition("=")[0] in swept]
    total = settings.sweeper.get("n_trials") or len(run_overrides(typed, params))
    _log.info("%s", ", ".join([f"run {settings.job.num + 1} of {total}", *own]))


@contextmanager
def without_folders(arguments: Sequence[str]) -> Iterator[list[str]]:
    """The arguments, with which Hydra leaves no folder behind where they ask for a plan or a dry run."""
    words = [word.lower().lstrip("+") for word in arguments]
    is_plan = "plan=true" in words
    if not is_plan and "hydra.launcher.dry_run=true" not in words:
        yield list(arguments)
        return
    # A launcher would start the runs elsewhere, which a plan doesn't.
    own = ("hydra.run.dir=", "hydra.sweep.dir=", *(("hydra/launcher=", "hydra.launcher.") if is_plan else ()))
    kept = [word for word in arguments if not word.startswith(own)]
    with TemporaryDirectory() as scratch:
        yield [*kept, f"hydra.run.dir='{scratch}'", f"hydra.sweep.dir='{scratch}'"]


HYDRA_ERRORS = (HydraException, OmegaConfBaseException)
"""Exceptions of Hydra and OmegaConf for settings that are wrong."""
YAML_ERRORS = (yaml.YAMLError, ValueError)
"""Exceptions that reading a file of settings raises beside these."""


def one_line(error: Exception, overrides: Sequence[str], conf: Path, added: str | None = None) -> str:
    """An error of composing `overrides` over the tree `conf`; options to choose from are a second line.

    `added` is the folder of `--config-dir`, which comes before `conf`.
    """
    trees = trees_of(conf, added)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}: {_one_space(error.problem or '')}; expected YAML"
    if isinstance(error, OverrideParseException):
        return _unparsed(error.override, overrides)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _missing_option(error, overrides, trees)
    if refusal := refused_override(overrides, trees) or _refused_default(overrides, trees):
        return refusal
    cause = error.__cause__
    key = getattr(cause if isinstance(cause, OmegaConfBaseException) else error, "full_key", None)
    if wrong_key := next((e for e in (error, cause) if isinstance(e, KeyValidationError)), None):
        return (
            f"{wrong_key.full_key}: null is no key; expected a word, in a file of settings 'null' in quotes"
        )
    # Hydra wraps OmegaConf's grammar errors without their text.
    text = str(error) or str(cause or error.__context__ or "")
    if key and not is_setting(key):
        words = [word for word in overrides if word.lstrip("+~").partition("=")[0] == key]
        typed = words[-1] if words else f"{key}="
        if key.startswith("hydra."):  # no model of ours describes it
            said = _one_space(str(cause or text).splitlines()[0])
            if not isinstance(cause, ConfigAttributeError | ConfigKeyError):
                return f"{typed}: {said}"
            parent, _, name = key.rpartition(".")
            known = [str(other) for other in cause.parent_node or ()]
            return f"{typed}: unknown key {name!r}; {did_you_mean(name, known, f'{parent}.') or said}"
        return unknown_key(key, typed.partition("=")[2])
    settings = " ".join(word for word in overrides if "=" in word)
    return f"{settings}: {_one_space(text)}{shell_hint(overrides)}"


def refuse_repeated_keys(overrides: Sequence[str], trees: Sequence[Path] = ()) -> None:
    """Raise `ConfigError` for a map with a key twice, and for `from` given twice: Hydra keeps the last.

    Plain maps of the overrides are read, in which `true` is `1` to Hydra, and the files in `trees` of the
    options that they choose.
    """
    if len(files := [word.partition("=")[2] for word in overrides if word.startswith("from=")]) > 1:
        raise ConfigError(f"from={files[-1]}: given {len(files)} times; expected from=[{','.join(files)}]")
    for override in _readable(overrides) if trees else ():
        file = option_file(override.key_or_group, str(override.value()), trees)
        if file is not None and (said := repeated_key(file)):
            raise ConfigError(said)
    for word in overrides:
        inside = word.partition("{")[2].rstrip("} ")
        if inside and not re.search(r"""[\[{$"'\\]""", inside):
            keys = [part.partition(":")[0].strip() for part in inside.split(",")]
            for override in _readable([word]):
                if isinstance(value := override.value(), dict) and len(value) < len(keys):
                    raise ConfigError(
                        f"{word}: a key is there twice, as true and 1 or false and 0 are to Hydra; expected "
                        f"{len(keys)} that differ"
                    )


def refused_override(overrides: Sequence[str], trees: Sequence[Path]) -> str:
    """Say what is wrong with the first override that names no group, option or setting; "" where all do."""
    for override in _readable(overrides):
        key = override.key_or_group
        if key.startswith("hydra"):
            continue
        value = override.input_line.partition("=")[2] if override.input_line else ""
        if key in groups(trees):
            option, names = override.value(), options(key, trees)
            if isinstance(option, str) and option not in names:
                return unknown_option(key, option, names)
        elif not is_setting(key):
            return unknown_key(key, value) + shell_hint(overrides)
    return ""


def is_setting(key: str) -> bool:
    """Whether a dotted key may lead to a setting, going by the models; any name may stand in a mapping."""
    parts = key.split(".")
    for depth, part in enumerate(parts):
        names = field_names(parts[:depth])
        if not names:
            return depth > 0
        if part not in names:
            return False
    return True


def unknown_option(group: str, option: str, options_of_group: Sequence[str]) -> str:
    """The line on an option that a group has not, and below it those that it has."""
    expected = f"expected one of the options of {group!r}"
    if nearest := did_you_mean(option, options_of_group, f"{group}="):
        expected += f"; {nearest}"
    return f"{group}={option}: no such option; {expected}\n  {', '.join(options_of_group)}"


def _missing_option(error: MissingConfigException, overrides: Sequence[str], trees: Sequence[Path]) -> str:
    path = str(error.missing_cfg_file).removesuffix(".yaml")
    group, _, option = path.partition("/")
    if group not in groups(trees):
        group, _, option = path.rpartition("/")
    if (group, option) == ("hydra/sweeper", "optuna"):
        return f"hydra/sweeper=optuna: not installed; expected {installing('tune')}"
    options_of_group = sorted(
        {*(options(group, trees) if group in groups(trees) else ()), *(error.options or ())}
    )
    if not option or not options_of_group:
        return _one_space(str(error))
    return unknown_option(group, option, options_of_group)


def _refused_default(overrides: Sequence[str], trees: Sequence[Path]) -> str:
    """Say what is wrong with the defaults list of the experiment that was chosen; "" where nothing is."""
    for override in _readable(overrides):
        value = override.value()
        if override.key_or_group != "experiment" or not isinstance(value, str):
            continue
        file = option_file("experiment", value, trees)
        for group, option in _defaults(file) if file else ():
            if group not in groups(trees):
                nearest = did_you_mean(group, groups(trees))
                expected = nearest or f"expected one of {', '.join(groups(trees))}"
                return f"{file}: defaults: unknown group {group!r}; {expected}"
            if option not in options(group, trees):
                return unknown_option(group, option, options(group, trees))
    return ""


def _defaults(file: Path) -> Iterator[tuple[str, str]]:
    """The groups and options that a file's defaults list names."""
    tree = yaml.safe_load(file.read_text(encoding="utf-8"))
    for entry in tree.get("defaults", []) if isinstance(tree, dict) else []:
        for key, option in entry.items() if isinstance(entry, dict) else ():
            group = key.removeprefix("override ").removeprefix("optional ").lstrip("/").partition("@")[0]
            if isinstance(option, str) and not group.startswith("hydra"):
                yield group, option


def _unparsed(word: str, overrides: Sequence[str]) -> str:
    key, equals, value = word.partition("=")
    is_nested = value.startswith(("[", "{"))
    quoted = f"{key}={_quoted_parts(value) if is_nested else json.dumps(value, ensure_ascii=False)}"
    if equals and quoted != word and not value.startswith(("'", '"')) and _readable([quoted]):
        return f"{word}: its value needs quotes, and they need the shell's; expected '{quoted}'"
    escaped = re.sub(
        r"""(["'])([^"']*)\1(?=\s*:)""", lambda of_map: re.sub(r"(\W)", r"\\\1", of_map[2]), word
    )
    if escaped != word and _readable([escaped]):
        return f"{word}: a key takes no quotes, but backslashes; expected '{escaped}'"
    if (in_ascii := re.sub(r"[^\x00-\x7f]", "x", escaped)) != escaped and _readable([in_ascii]):
        return (
            f"{word}: a key has ASCII letters alone here; expected it in a file, "
            f"conf/experiment/NAME.yaml with {key} in it (monitorbench init makes the folder), and "
            "experiment=NAME"
        )
    return f"{word}: not an override; expected key=value, a list as 'key=[a,b]'{shell_hint(overrides, word)}"


def _quoted_parts(value: str) -> str:
    """A list or a map with quotes around those of its parts that Hydra can't read without them."""
    parts = re.split(r"""([\[\]{},:]|"[^"]*"|'[^']*')""", value)
    return "".join(
        part
        if not part.strip() or index % 2 or _readable([f"key={part.strip()}"])
        else json.dumps(part.strip(), ensure_ascii=False)
        for index, part in enumerate(parts)
    )


def shell_hint(overrides: Sequence[str], word: str = "") -> str:
    """Say what a shell may have done to these words before they came; "" where they don't look like it."""
    opened = next((w for w in overrides if w.count("[") > w.count("]") or w.count("{") > w.count("}")), "")
    if opened:
        key = opened.partition("=")[0]
        return f"; a bracket is not closed: quote a word with spaces as a whole, as '{key}=[a, b]'"
    keys = [w.partition("=")[0] for w in overrides if "=" in w]
    twice = next((a for a, b in itertools.pairwise(keys) if a == b), "")
    if twice:
        return f"; {twice} stands there twice in a row, as a shell expands {{a,b}}: quote the whole word"
    if word and re.search(r"[\s/*?]|\.\w+$", word) and "=" not in word and len(overrides) > 1:
        return "; a shell may have expanded a pattern into file names: quote the whole word"
    return ""


def _one_space(text: str) -> str:
    return " ".join(text.split())
