"""One message, tool call or part of a content, read by the whitelist of its form.

Promise: nothing is dropped. Each field of an object is either used as its form says, or left out as `quiet`
has it, or unknown; what is unknown is shown as JSON or refused with its place, as `UnknownContent` says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from monitorbench.conversations import quiet
from monitorbench.conversations.forms import CALL, ITEMS, MESSAGE, ROLES, part_form
from monitorbench.conversations.speakers import with_roles
from monitorbench.conversations.uses import Form, Use
from monitorbench.records import Message, Role, ToolCall
from monitorbench.strict_json import as_json, parsed

UnknownContent = Literal["show", "refuse"]
"""Treatment of content of an unknown form: show it to the judge as it stands, or refuse it with its place."""

_DEEPEST = 40
"""Levels of parts inside parts that are read."""


class NoChat(ValueError):
    """Raised for what can't be read as chat messages; the text is one line with the place."""


@dataclass
class _Pieces:
    """Content of the fields of one object."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    """Id of the call, and what the tool gave."""
    link: str = ""

    def append(self, others: "_Pieces") -> None:
        """Append what other parts of the same content say."""
        self.texts += others.texts
        self.thoughts += others.thoughts
        self.calls += others.calls
        self.results += others.results
        self.link = self.link or others.link

    def merge(self, others: "_Pieces") -> None:
        """Append what another field says, less what it repeats: some servers say the same under two names."""
        if others.texts == self.texts:
            others.texts = []
        others.thoughts = [text for text in others.thoughts if text not in self.thoughts]
        own_calls = [_compared(call) for call in self.calls]
        calls, others.calls = others.calls, []
        for call in calls:
            if _compared(call) in own_calls:
                own_calls.remove(_compared(call))
            else:
                others.calls.append(call)
        self.append(others)


def _compared(call: ToolCall) -> tuple[str, str, str]:
    return call.id, call.name, as_json(parsed(call.arguments))


class MessageReader:
    """Reads the messages of one conversation, in their order."""

    def __init__(self, unknown: UnknownContent) -> None:
        """Know no tool yet."""
        self._unknown = unknown
        self._called: set[str] = set()

    def messages(self, given: object, where: str) -> list[Message]:
        """Return a message, followed by the results of tools that ran inside it; raises `NoChat`."""
        _written(given, where)
        return [message for inner in with_roles(given) for message in self._message(inner, where)]

    def whole(self, given: Mapping[str, Any], where: str, role: Role) -> list[Message]:
        """Return an object of no known form as its JSON, said by `role`; raises `NoChat` where refused."""
        _written(given, where)
        kind = given.get("type")
        what = f"type {kind!r}" if isinstance(kind, str) else f"fields {', '.join(given)}"
        self._refuse(where, f"a message of unknown form ({what[:60]})")
        return [Message(role=role, content=as_json(given))]

    def _message(self, given: object, where: str) -> list[Message]:
        """Read a message whose speaker is a role, or which is an item of OpenAI's Responses."""
        if not isinstance(given, Mapping):
            raise NoChat(f"{where}: expected an object with role and content, found {kind_of(given)}")
        kind = given.get("type")
        form, role = MESSAGE, given.get("role")
        if "role" not in given and isinstance(kind, str):
            form, role = ITEMS.get(kind, MESSAGE), kind
        if form.role is None and (not isinstance(role, str) or role not in ROLES):
            role_text = repr(role)[:60] if isinstance(role, str) else kind_of(role)
            raise NoChat(f"{where}.role: {role_text} is no role; expected {', '.join(ROLES)}")
        speaker = form.role or ROLES[str(role)]
        pieces = self._object(given, form, where, 0)
        message = Message(
            role=speaker,
            content=_joined(pieces.texts),
            thinking=_joined(pieces.thoughts),
            tool_calls=tuple(pieces.calls),
            tool_call_id=pieces.link if speaker is Role.TOOL else "",
        )
        results = (Message(role=Role.TOOL, content=text, tool_call_id=id_) for id_, text in pieces.results)
        return [message, *results]

    def _object(self, given: Mapping[str, Any], form: Form, where: str, depth: int) -> _Pieces:
        """Read an object by its form."""
        if depth > _DEEPEST:
            raise NoChat(f"{where[:120]}…: parts inside parts, more than {_DEEPEST} levels; flatten them")
        flat = _unboxed(given, form)
        pieces = _Pieces()
        unknown = {
            name: value
            for name, value in flat.items()
            if name not in form.fields and not (quiet.is_nothing(value) and quiet.is_field_name(name))
        }
        appended: dict[str, object] = {}
        media: dict[str, object] = {}
        separate: dict[str, object] = {}
        results: list[str] = []
        call_id = name = mark = ""
        for key in sorted(form.order.keys() & flat.keys(), key=form.order.__getitem__):
            value, use = flat[key], form.fields[key]
            if quiet.is_nothing(value):
                continue
            place = f"{where}.{key}"
            match use:
                case Use.TEXT:
                    pieces.merge(self._parts(value, place, depth))
                case Use.VALUE:
                    pieces.merge(self._value(value, place, depth))
                case Use.RESULT:
                    inner = self._value(value, place, depth)
                    results += [*inner.thoughts, *inner.texts]
                    pieces.calls += inner.calls
                case Use.THOUGHT:
                    inner = self._parts(value, place, depth)
                    inner.thoughts, inner.texts = [*inner.texts, *inner.thoughts], []
                    pieces.merge(inner)
                case Use.CALLS:
                    pieces.merge(self._calls(value, place, depth))
                case Use.NAME:
                    name = _name(value, place)
                case Use.ARGUMENT:
                    separate[key] = value
                case Use.ID | Use.LINK:
                    if not isinstance(value, str | int) or isinstance(value, bool):
                        raise NoChat(f"{place}: expected an id, found {kind_of(value)}")
                    call_id = str(value)
                    if not quiet.is_made_id(value, flat.get("name")):
                        pieces.texts.append(as_json({key: value}))
                case Use.CALLED:
                    if not isinstance(value, str) or value not in self._called:
                        appended[key] = value
                case Use.ERROR:
                    pieces.texts.append(_error(value))
                case Use.MEDIA:
                    if (text := quiet.plain_text(value)) is not None:
                        pieces.append(self._parts(text, place, depth + 1))
                        continue
                    mark = form.mark or key
                    if (remaining := quiet.remainder(value, without_bytes=True)) is not None:
                        media[key] = remaining
                case Use.FLAG:
                    if value is not False:
                        appended[key] = value
                case Use.OPAQUE:
                    if not quiet.is_opaque(value):
                        unknown[key] = value
                case Use.QUIET:
                    if (remaining := quiet.remainder(value)) is not None:
                        unknown[key] = remaining
                case Use.BOX:  # one that is no object
                    unknown[key] = value
                case Use.ROLE | Use.KIND | Use.ARGUMENTS:
                    pass
        if unknown and self._unknown == "refuse":
            first = next(iter(unknown))
            if first in form.fields:
                text = as_json(unknown[first])[:60]
                raise NoChat(
                    f"{where}.{first}: unexpected value {text}; no judge is shown this field, expected no "
                    "text of its own in it"
                )
            expected = ", ".join(key for key, use in form.fields.items() if use is not Use.QUIET)
            raise NoChat(f"{where}: unknown field {first!r}; expected {expected}")
        if not pieces.texts and form.mark:
            mark = form.mark
        if mark:
            pieces.texts.insert(0, f"[{mark}]")
        appended |= media
        if form.is_call:
            name = name or form.call
            if not name:
                raise NoChat(f"{where}: expected a tool call with a name")
            arguments = {
                key: flat[key] for key, use in form.fields.items() if use is Use.ARGUMENTS and key in flat
            }
            has_arguments = separate or any(not quiet.is_nothing(value) for value in arguments.values())
            appended |= unknown if has_arguments else {}
            sent = self._arguments(arguments, separate if has_arguments else unknown, where)
            pieces.calls.insert(0, ToolCall(id=call_id, name=name, arguments=sent))
            self._called.add(name)
        else:
            pieces.link = call_id or pieces.link
            appended |= unknown
        if appended:
            pieces.texts.append(as_json(appended))
        pieces.results += [(call_id, _joined(results))] if results else []
        return pieces

    def _parts(self, given: object, where: str, depth: int) -> _Pieces:
        """Read a text, a part, or a list of parts."""
        if isinstance(given, str):
            return _Pieces([given])
        if isinstance(given, Mapping):
            return self._part(given, where, depth)
        pieces = _Pieces()
        if not isinstance(given, list):
            self._refuse(where, f"{kind_of(given)} is no text and no list of parts")
            pieces.texts.append(as_json(given))
            return pieces
        for number, entry in enumerate(given):
            pieces.append(self._part(entry, f"{where}.{number}", depth))
        return pieces

    def _part(self, given: object, where: str, depth: int) -> _Pieces:
        if isinstance(given, str):
            return _Pieces([given])
        form = part_form(given) if isinstance(given, Mapping) else None
        if isinstance(given, Mapping) and form is not None:
            return self._object(given, form, where, depth + 1)
        kind = given.get("type") if isinstance(given, Mapping) else kind_of(given)
        self._refuse(where, f"a part of unknown type {str(kind)[:40]!r}")
        return _Pieces([as_json(given)])

    def _value(self, given: object, where: str, depth: int) -> _Pieces:
        """Read text or known parts; any other value is its JSON."""
        listed = given if isinstance(given, list) else [given]
        are_parts = (isinstance(entry, Mapping) and part_form(entry) is not None for entry in listed)
        if isinstance(given, str) or (listed and all(are_parts)):
            return self._parts(given, where, depth)
        return _Pieces([as_json(given)])

    def _calls(self, given: object, where: str, depth: int) -> _Pieces:
        pieces = _Pieces()
        for number, call in enumerate(given if isinstance(given, list) else [given]):
            place = f"{where}.{number}" if isinstance(given, list) else where
            if not isinstance(call, Mapping):
                raise NoChat(f"{place}: expected a tool call, an object with name and arguments")
            pieces.append(self._object(call, CALL, place, depth + 1))
        return pieces

    def _arguments(self, whole: Mapping[str, object], rest: Mapping[str, object], where: str) -> str:
        """Return all that a call sends, as it was sent where one field holds it."""
        filled = {key: value for key, value in whole.items() if not quiet.is_nothing(value)}
        if len({as_json(parsed(value)) for value in filled.values()}) > 1:
            self._refuse(where, f"arguments under {' and '.join(filled)}")
            return as_json({**filled, **rest})
        empty = [value for value in whole.values() if value is not None]
        sent = [*filled.values(), *empty][:1]
        texts = [value if isinstance(value, str) else as_json(value) for value in sent]
        if rest and not filled:
            texts = []
        return _joined((*texts, *([as_json(rest)] if rest else [])))

    def _refuse(self, where: str, what: str) -> None:
        if self._unknown == "refuse":
            raise NoChat(f"{where}: {what}; expected a known form, as in docs/data-formats.md")


def _unboxed(given: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """Fields of an object and of the boxes in it.

    What stands in both keeps the box's name before it; so does a role or a kind, which chose the form and is
    of the object itself.
    """
    flat = dict(given)
    for box in form.boxes:
        inner = flat.get(box)
        if isinstance(inner, str) and box == "function":
            flat[box] = {"name": inner}
            inner = flat[box]
        if not isinstance(inner, Mapping):
            continue
        del flat[box]
        for name, value in inner.items():
            is_own = name in flat or form.fields.get(name) in (Use.ROLE, Use.KIND)
            is_other = is_own and flat.get(name) != value
            flat[f"{box}.{name}" if is_other else name] = value
    return flat


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise NoChat(f"{where}: expected a tool's name, found {kind_of(value)}")
    return value


def _error(value: object) -> str:
    if isinstance(value, Mapping) and set(value) <= {"type", "message"}:
        return f"Error ({value.get('type', 'unknown')}): {value.get('message', '')}"
    return as_json({"error": value})


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def _written(given: object, where: str) -> None:
    """Refuse what can't be written as JSON in UTF-8."""
    try:
        as_json(given).encode()
    except UnicodeEncodeError as error:
        raise NoChat(f"{where}: half a surrogate pair; no valid text") from error
    except (TypeError, ValueError) as error:
        raise NoChat(f"{where}: {error}; expected JSON") from error


def kind_of(value: object) -> str:
    """Return what JSON calls a value: `a list`, `a number`."""
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "text"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")
