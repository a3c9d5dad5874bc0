"""The last sections: how the report was made, and what every column and mark of it means."""

from collections.abc import Mapping

from markupsafe import Markup

from monitorbench.metrics.inverted import MARGIN
from monitorbench.metrics.marks import MARK
from monitorbench.metrics.results import Results
from monitorbench.metrics.written import rate
from monitorbench.report.sections.section import Material, fill
from monitorbench.report.template import facts


def background(material: Material) -> Markup:
    """Show how the report was made, one value a line, and what its words mean."""
    provenance = _made(material.results, material.manifest)
    return fill("background", {"made": provenance, "margin": rate(MARGIN), "mark": rate(MARK)})


def _made(results: Results, manifest: Mapping[str, object]) -> list[tuple[str, str]]:
    """The data set, then all that the manifest says."""
    dataset = results["dataset"]
    return [("dataset", f"{dataset['name']} ({dataset['directory']})"), *facts(manifest)]
