"""Sections of the page: each is a name and a function that makes it.

A section's function takes the `Material` of the report and returns its HTML; an empty one is left out. Most
fill a template of the same name in `templates/sections/`, where all text is escaped; `report.write.SECTIONS`
lists the sections in order.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

from markupsafe import Markup

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.results import Results
from monitorbench.metrics.robustness import StressFacts
from monitorbench.report.samples.browsable import link
from monitorbench.report.samples.judged import Scores, Worst
from monitorbench.report.template import templates


class Material(NamedTuple):
    """Data that every section may draw on."""

    results: Results
    """`metrics.json`."""
    manifest: Mapping[str, object]
    """Manifest of the run that the metrics came from."""
    worst: Worst
    """The worst samples by monitor and prompt."""
    worst_missing: Sequence[str]
    """A sentence for each run whose samples could not be read."""
    prompts: Sequence[str]
    """Prompts, in the order they are shown."""
    short_names: Mapping[str, str]
    """Short names of monitors, by full name."""
    scores: Sequence[Scores] = ()
    """Scores of each monitor and prompt whose run could be read."""
    browsable: Set[tuple[str, str]] = frozenset()
    """Monitors and prompts whose samples are on the samples page beside this one, to be linked."""
    other_points: bool = False
    """Whether published points of other datasets are drawn beside the monitors' own."""
    stress: Sequence[StressFacts] = ()
    """Stress results of each monitor and prompt that was stressed."""

    def samples_link(
        self, monitor: str, prompt: str, *, cell: str = "", verdict: str = "", sample: str = ""
    ) -> str:
        """The address of a monitor's samples of a cell with this verdict, or of one; empty where none is."""
        if (monitor, prompt) not in self.browsable:
            return ""
        inside = "" if cell == OVERALL else cell
        return link(monitor, prompt, cell=inside, verdict=verdict, sample=sample)


class Section(NamedTuple):
    """One section of the page."""

    name: str
    make: Callable[[Material], Markup]
    """Returns nothing where the section has nothing to show."""
    level: int = 2
    """Level of its heading: 3 for a part of the section above it, 1 for one that heads the page itself."""

    @property
    def anchor(self) -> str:
        """Return the section's id in addresses within the page."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def title(self) -> str:
        """Return the section's heading, also its line in the table of contents."""
        return self.name[:1].upper() + self.name[1:]


NOTHING = Markup()
"""Empty markup, returned by a section that is to be left out."""


def fill(name: str, values: Mapping[str, object]) -> Markup:
    """The section's template `templates/sections/<name>.html.j2`, filled in, with every text escaped."""
    return Markup(templates().get_template(f"sections/{name}.html.j2").render(values))


class PageNumber(NamedTuple):
    """A number as it is shown, its interval, and the bounds where unscored answers widen it."""

    value: str
    interval: str
    bounds: str = ""
    link: str = ""
    """Address of the samples that the number counts."""
    mark: str = ""
    """A word beside it that the reader has to see."""
    is_strong: bool = False
    """Whether the number itself is what the reader has to see."""
