"""The console that tables and sentences are printed on: names out of files give the terminal no orders."""

from collections.abc import Iterable

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from monitorbench.config.ending import printable

WIDTH = 80


class Console(RichConsole):
    """Rich's console, which shows escapes for what would command a terminal or turn text round.

    Names of monitors, columns and groups are whatever somebody's file says. Escapes are made as a text is
    rendered, so that a table's columns keep their widths.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render something to segments, of which those with text are printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def opened(*, stderr: bool = False, width: int = WIDTH) -> Console:
    """Return a console on stdout, or beside it: as wide as the terminal, else `width` columns."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=width)
