"""A dataset's card in Markdown: what it is made of, what is missing, what its labels are worth."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from monitorbench.metrics.marks import IN_WORDS, MARK, NO_STRATUM, SIGN, SURFACES, auroc_in_words

_SUBSTITUTE = (
    "**A substitute.** Built from the sources that were at hand, up to the quotas of `dataset=paper`. What "
    "is missing is stated below as the shortfall; nothing was padded."
)


def card(name: str, manifest: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """The whole card; `report` is `audit.json`, `manifest` the dataset's."""
    results = manifest["results"]
    parts = [f"# {name}\n"]
    if report["marked"]:
        parts.append(f"**A shortcut gives the label away ({SIGN}: AUROC surely above {MARK:.2f}) in:**\n")
        parts.append("\n".join(f"- {_escaped(line)}" for line in report["marked"]) + "\n")
    if any(
        "synthetic" in facts["sources"] for cells in report["splits"].values() for facts in cells.values()
    ):
        parts.append("**Holds synthetic nonsense samples: for scale tests only.**\n")
    if results.get("shortfall"):
        parts.append(_SUBSTITUTE + "\n")
    for split, cells in report["splits"].items():
        parts.append(f"## {split}\n")
        headline = results.get("headline", {})
        rows = (row for cell, facts in cells.items() for row in _rows(cell, facts, headline.get(cell)))
        parts.append(_table(_HEAD, rows))
        parts.append(
            "Sources: " + "; ".join(f"{cell}: {_shares(facts['sources'])}" for cell, facts in cells.items())
        )
        parts.append("Licences: " + _shares(_summed(facts["licences"] for facts in cells.values())))
        parts.append(
            "Constructions: " + _shares(_summed(facts["constructions"] for facts in cells.values())) + "\n"
        )
    if shortfall := results.get("shortfall"):
        parts.append("## Shortfall\n")
        parts.append(_table(("split", "cell", "asked", "have", "missing"), _short(shortfall)))
    if constructed := results.get("constructed"):
        parts.append("## What was rejected while the candidates were constructed\n")
        rows = (
            (n, facts["samples"], _reasons(Counter(facts["rejected"]) + Counter(facts["bad_rows"])))
            for n, facts in constructed.items()
        )
        parts.append(_table(("source", "samples kept", "rows rejected, by reason"), rows))
    if unfinished := {n: status for n, status in results.get("logs", {}).items() if status != "success"}:
        parts.append("## Logs of runs that did not finish\n")
        parts.append("; ".join(f"{name}: {status}" for name, status in unfinished.items()) + "\n")
    if dropped := results.get("dropped"):
        parts.append("## What was rejected while it was built\n")
        parts.append(_reasons(dropped) + "\n")
    train = results["splits"].get("train", {})
    if isinstance(cells := train.get("cells"), dict):
        parts.append("## Candidates that are not in the training split\n")
        rows = ((cell, facts["samples"], _reasons(facts["rejected"])) for cell, facts in cells.items())
        parts.append(_table(("cell", "samples", "not taken, by reason"), rows))
    parts.append(
        f"Tokens are those of `{report['tokenizer']}` without the prompt. A shortcut check is the AUROC, "
        "with its 95 % interval, of a classifier that reads nothing, cross-validated by request: of the "
        "response's words; of what it echoes of its request; of their overlap; of its form; of all these "
        "together, with both texts' words; of its length; of its source. Where the train split is made "
        "otherwise, it is fitted there as well, and the larger lower bound stands here. The oracles know "
        "what no text says: whether the request's suggestion is right, whether the answer is. Strata "
        "stand below their cell where it has several.\n"
    )
    return "\n".join(parts)


_HEAD = (
    *("cell", "samples", "pairs", "misbehavior", "thinking", "tokens (median, p95, max)"),
    *(IN_WORDS[surface] for surface in SURFACES),
)


def _rows(cell: str, facts: Mapping[str, Any], headline: str | None) -> Iterable[Sequence[object]]:
    """A cell's row, and below it one for each of its strata."""
    tokens, strata = facts["tokens"], facts["strata"]
    yield (
        cell + (f" (checks: {_escaped(headline)})" if headline is not None and headline in strata else ""),
        facts["samples"],
        facts["pairs"],
        facts["labels"].get("misbehavior", 0),
        facts["with_thinking"],
        f"{tokens['median']:.0f}, {tokens['p95']:.0f}, {tokens['max']:.0f}",
        *_checks(facts["shortcuts"]),
    )
    for stratum, of in strata.items():
        name = f"↳ {_escaped(stratum or NO_STRATUM)}"
        yield name, of["samples"], of["pairs"], "", "", "", *_checks(of["shortcuts"])


def _checks(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return [""] * len(SURFACES)
    checks = [found["checks"][surface] for surface in SURFACES]
    return [auroc_in_words(check) + (f" {SIGN}" if check["marked"] else "") for check in checks]


def _escaped(text: str) -> str:
    """A name or a rule, which may quote a judged text, as plain text in Markdown."""
    return html.escape(re.sub(r"([\\`*\[\]])", r"\\\1", " ".join(text.split())), quote=False)


def _short(shortfall: Mapping[str, Any]) -> Iterable[Sequence[object]]:
    for split, cells in shortfall.items():
        for cell, short in cells.items():
            traces = {"": short} if "asked" in short else short
            for trace, numbers in traces.items():
                where = f"{cell}, {trace.replace('_', ' ')}" if trace else cell
                yield split, where, numbers["asked"], numbers["have"], numbers["missing"]


def _shares(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    return ", ".join(f"{name} {count} ({count / total:.0%})" for name, count in counts.items())


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for counted in counts:
        for name, count in counted.items():
            total[name] = total.get(name, 0) + count
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def _reasons(rejected: Mapping[str, int]) -> str:
    return "; ".join(f"{reason}: {count}" for reason, count in sorted(rejected.items())) or "none"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return (
        "\n".join(
            "| " + " | ".join(str(value).replace("|", "\\|") for value in line) + " |" for line in lines
        )
        + "\n"
    )
