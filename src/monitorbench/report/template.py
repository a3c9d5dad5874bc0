"""Parts of every page: templates, the policy that a browser keeps to, the list of how it was made.

Promises: text put into a template is escaped, and what can't be seen of it is named.

Text of other people is shown so that nothing in it is hidden and nothing acts: `visible` is for what escaping
leaves alone: a terminal's escape sequences, marks that turn the direction of the text around them, characters
that take no room.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from monitorbench.metrics.written import DASH, interval, rate, signed, signed_interval
from monitorbench.prompts.lookalikes import INVISIBLE

_JOINED = "\u0600-\u18af\ua800-\uabff\U00010a00-\U00011fff\ufe0f\u2600-\u27bf\U0001f000-\U0001faff"
"""Letters of the scripts that are written with joiners, and pictures that are put together with them."""

_UNSEEN = re.compile(
    f"(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}])|([\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{INVISIBLE}])"
)
"""Controls except tab and new line, what is invisible (but for the joiners of many scripts, between their
letters), and lone surrogates, which no file can hold."""


def visible(text: str) -> str:
    """The text with each unseen character named, as in `⟨U+202E⟩`."""
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[1]):04X}⟩" if match[1] else match[0], text)


_MOST_CHARACTERS = 300
"""Most characters of one value in the list of how a report was made."""


@cache
def templates() -> Environment:
    """The package's templates; a variable that is missing is an error, not an empty place."""
    environment = Environment(
        loader=PackageLoader("monitorbench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    written_by = (breakable, unbroken, rate, interval, signed, signed_interval)
    environment.filters |= {function.__name__: function for function in written_by}
    return environment


def breakable(name: str) -> Markup:
    """Escape a name, and let a line end after its underscores and slashes, at no letter."""
    return Markup(re.sub("([_/])", r"\1<wbr>", str(escape(visible(name)))))


def unbroken(sentence: str) -> Markup:
    """Escape a sentence whose lines may end behind the `_` of a name, not in `[14–22]` or behind `≤`."""
    kept = re.sub(r"(\[[^\s\]]*–)", "\\1\N{WORD JOINER}", str(escape(_visible(sentence))))
    kept = kept.replace("≤ ", "≤\N{NO-BREAK SPACE}")
    return Markup(re.sub(r"(?<=\w[_/:])(?=\w)", "<wbr>", kept))


def policy(*scripts: str) -> str:
    """The page's Content-Security-Policy: these scripts if any, inline styles, and nothing else."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    allowed = f"script-src {hashes}; " if scripts else ""
    return f"default-src 'none'; {allowed}style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


_OF_FILES = ("files", "checksum")
"""Manifest fields about the run's files, left out: the page is one of them, and would change itself."""


def facts(manifest: Mapping[str, object]) -> list[tuple[str, str]]:
    """List how the run was made by its manifest: a value a line under its place, a long one cut."""
    return _facts({key: value for key, value in manifest.items() if key not in _OF_FILES})


def _facts(value: object, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [
            line
            for key, inner in value.items()
            for line in _facts(inner, f"{name} / {key}" if name else str(key))
        ]
    if isinstance(value, list | tuple):
        if any(isinstance(inner, Mapping | list | tuple) for inner in value):
            return [line for i, inner in enumerate(value) for line in _facts(inner, f"{name} / {i + 1}")]
        value = ", ".join(map(str, value))
    text = DASH if value is None or value == "" else str(value)
    return [
        (name.replace("_", " "), text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…")
    ]


def _visible(value: object) -> object:
    """Name invisible characters in text that is no markup, and keep lines from ending before a %."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value).replace(" %", "\N{NO-BREAK SPACE}%")
    return value
