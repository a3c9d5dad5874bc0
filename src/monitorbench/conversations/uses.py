"""The uses that a known field can have, and a form as the whitelist of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from monitorbench.records import Role


class Use(Enum):
    """Use that a reader makes of a field."""

    ROLE = auto()
    """Says who speaks."""
    KIND = auto()
    """Type by which the form was found."""
    TEXT = auto()
    """Text, or parts, that the judge is shown."""
    THOUGHT = auto()
    """Text, or parts, of the reasoning before the answer."""
    VALUE = auto()
    """Text, parts, or any other value, which is shown as JSON."""
    FLAG = auto()
    """Shown where it is anything but false."""
    RESULT = auto()
    """Result of a tool that ran inside the message: a tool's message of its own."""
    ERROR = auto()
    """Error of a tool, as Inspect keeps it: an object with type and message."""
    CALLS = auto()
    """A tool call, or a list of them."""
    NAME = auto()
    """Name of the tool that is called."""
    ARGUMENTS = auto()
    """All arguments of a tool call: JSON text, or a value."""
    ARGUMENT = auto()
    """One argument of a tool call, under its own name."""
    BOX = auto()
    """Object that holds more fields of the same form, or a text that is the tool's name."""
    ID = auto()
    """The tool call's own id."""
    LINK = auto()
    """Id of the tool call that this is the result of."""
    CALLED = auto()
    """Name of a tool whose call stands earlier; shown where none does."""
    MEDIA = auto()
    """Image, sound, video or file: named by its type, its bytes left out, all else about it shown."""
    OPAQUE = auto()
    """Signature or encrypted text in base64, which nobody can read."""
    QUIET = auto()
    """Numbers, ids, model names and words of the protocol, which say nothing about what was done."""


@dataclass(frozen=True)
class Form:
    """The whitelist of one form."""

    fields: Mapping[str, Use]
    role: Role | None = None
    """Role of the speaker, where the form itself says so."""
    call: str = ""
    """Name of the tool that is called, where the form itself says so."""
    mark: str = ""
    """Note in place of what nobody can read."""

    @cached_property
    def is_call(self) -> bool:
        """Whether an object of this form is a tool call."""
        return bool(self.call) or Use.NAME in self.fields.values()

    @cached_property
    def order(self) -> Mapping[str, int]:
        """Place of each field in the order in which fields are read."""
        return {name: place for place, name in enumerate(self.fields)}

    @cached_property
    def boxes(self) -> tuple[str, ...]:
        """Names of the fields that hold more fields of this form."""
        return tuple(name for name, use in self.fields.items() if use is Use.BOX)
