"""The failures a person can mend. Each message is one line: what, where, what to do."""


class ConfigError(ValueError):
    """A bad setting: the key, its value and what was expected. Exit code 2."""


class UserError(Exception):
    """Anything else foreseen, such as a missing file. Exit code 1."""


class Preempted(KeyboardInterrupt):
    """Told to stop, with the rest of the work to be done later. Exit code 75, EX_TEMPFAIL.

    An interrupt, so that whatever survives other failures lets it through.
    """
