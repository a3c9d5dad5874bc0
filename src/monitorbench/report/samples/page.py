"""The samples page: every judged sample with every monitor's verdict, to filter, read and compare.

Promises: one file that loads nothing; its data lie in blocks that no browser executes, and the one script,
named by hash in the page's policy, puts all of it in as text.
"""

from collections.abc import Sequence

from markupsafe import Markup

from monitorbench.metrics.results import Results
from monitorbench.report.samples.browsable import MOST_BYTES, packed
from monitorbench.report.samples.runs import OfRun
from monitorbench.report.template import policy, templates


def render_samples(results: Results, runs: Sequence[OfRun], most_bytes: int = MOST_BYTES) -> str:
    """The page of these runs; its data take at most `most_bytes`, by showing less of long texts."""
    data = packed(results, runs, most_bytes)
    script = templates().get_template("samples.js").render()
    return (
        templates()
        .get_template("samples.html.j2")
        .render(
            dataset=results["dataset"],
            policy=policy(script),
            # Safe to put in as they are: a file of ours, and base64.
            script=Markup(script),
            index=Markup(data.of_all),
            parts=[Markup(chunk) for chunk in data.parts],
        )
    )
