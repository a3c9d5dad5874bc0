"""Responses that the upstream has labelled, as they are: nothing is paired here but what upstream pairs."""

from collections import Counter
from collections.abc import Iterable

from monitorbench.construct.pair import Constructed, ConstructionVersion
from monitorbench.records import Construction, Sample
from monitorbench.upstream import LabelledResponse

VERSION = ConstructionVersion("labelled", 1)


def labelled_samples(
    rows: Iterable[LabelledResponse], *, source: str, licence: str, stratum: str = ""
) -> Constructed:
    """One sample a row. `pair_id` is the row's own where upstream has no counterpart."""
    samples = [
        Sample(
            pair_id=f"{source}-{row.pair or row.id}",
            group_id=f"{source}-{row.group}",
            category=row.category,
            task=row.task,
            subcategory=row.subcategory,
            request=row.request,
            response=row.response,
            label=row.label,
            label_source=row.label_source,
            construction=Construction.LABELLED,
            stratum=stratum,
            subject_model=row.subject_model,
            source=source,
            licence=licence,
        )
        for row in rows
    ]
    return Constructed(samples, Counter())
