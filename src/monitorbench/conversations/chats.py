"""Whole conversations: a text, one message, a list of messages, or an object that holds such a list.

Promise: what is given is read whole, row by row and by itself, or refused in one line with its place.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from monitorbench import strict_json
from monitorbench.conversations import quiet
from monitorbench.conversations.forms import ITEMS, MARKS, ROLES
from monitorbench.conversations.read import MessageReader, NoChat, UnknownContent, kind_of
from monitorbench.conversations.speakers import is_spoken
from monitorbench.records import Message, Role
from monitorbench.strict_json import as_json

_SYSTEM = (
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
    "system_instructions",
    "preamble",
    "gen_ai.system_instructions",
)
_LISTS = (
    "chat_history",
    "conversations",
    "messages",
    "message",
    "contents",
    "input",
    "output",
    "choices",
    "candidates",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
)
"""Fields of requests and answers of the providers' APIs that hold messages, in the order of the talk."""
_ANSWERS = frozenset(("output", "choices", "candidates", "gen_ai.output.messages"))
"""Fields of `_LISTS` of which a plain text is the model's."""
AROUND = frozenset(("chat_history", "conversations", "messages", "contents", "choices", "candidates"))
"""Fields of `_LISTS` that mark an object as holding a chat."""
_MARK = re.compile(r"^\[([\w. ]+)\]$", re.MULTILINE)
_BEGINS_LIKE_JSON = "^[\\s\ufeff]*" + r"""(?:```\w*\s*)?(?:[\\"]+|\(|array\()?\s*[\[{]"""
"""A value of JSON or Python: itself, in a fence or quotes, or as numpy and tuples are written."""
_LIKE_A_CHAT = re.compile(
    _BEGINS_LIKE_JSON + r""".*?["'](role|type|messages|contents|choices|candidates|parts|from)[\\"']+\s*:""",
    re.DOTALL,
)
_OBJECTS = re.compile(r"\s*[\[(]\s*\w*Message\w*\(")
"""Beginning of a list of a framework's message objects, as Python shows them."""
_FENCED = re.compile(r"\s*```\w*[ \t]*\n(.*)```\s*", re.DOTALL)
"""A text that is one fenced block and nothing else."""
_TURN_MARK = r"[ \t*#>]*(?i:(user|human|assistant|ai))[*]*[ \t]*:"
"""Beginning of a turn where a chat is written as lines: `User: …`, `**Assistant**: …`."""
_TURN = re.compile("^" + _TURN_MARK, re.MULTILINE)
MAY_BE_A_CHAT = rf"{_BEGINS_LIKE_JSON}|^\s*{_TURN_MARK}"
"""Beginning that every text has which is a chat, or looks like one; for the search in a column."""


class Exchange(NamedTuple):
    """A request and the response that is judged."""

    request: tuple[Message, ...]
    response: tuple[Message, ...]


def chat_in(
    given: object, where: str, speaker: Role, unknown: UnknownContent = "show"
) -> tuple[Message, ...]:
    """Return the messages of a request or a response; a text that is no chat is one message of `speaker`.

    A text is a chat where all of it is one, written as JSON or as Python writes lists, fenced or not.

    Raises `NoChat` where the value is no chat, or has no text in it.
    """
    if isinstance(given, str):
        try:
            given.encode()
        except UnicodeEncodeError as error:
            raise NoChat(
                f"{where}: half a surrogate pair at character {error.start}; no valid text"
            ) from error
        if is_chat(value := _value_of(given)):
            given = value
    if isinstance(given, str):
        messages: tuple[Message, ...] = (Message(role=speaker, content=given),)
    else:
        messages = messages_in(given, where, unknown, speaker)
    if not has_something(messages):
        raise NoChat(f"{where}: nothing in it")
    return messages


def messages_in(
    given: object, where: str, unknown: UnknownContent = "show", speaker: Role = Role.ASSISTANT
) -> tuple[Message, ...]:
    """Return the messages of a list, of one message, or of an object around a list; raises `NoChat`.

    In a list with a message of a known form, an object of none is its JSON, said by `speaker`, or refused.
    """
    reader = MessageReader(unknown)
    given = _unbatched(given)
    try:
        if isinstance(given, Mapping) and not _is_message(given):
            return tuple(_enclosed(given, where, reader, unknown, speaker))
        if isinstance(given, Mapping):
            return tuple(reader.messages(given, where))
        if not isinstance(given, list) or not given:
            raise NoChat(f"{where}: expected text or a list of messages, found {kind_of(given)}")
        return tuple(_listed(list(map(_choice, given)), where, reader, speaker))
    except RecursionError as error:
        raise NoChat(f"{where}: nested too deeply; flatten it") from error


def trajectory_in(given: object, where: str, unknown: UnknownContent = "show") -> Exchange:
    """Split a run: what precedes the assistant's first message is the request, the rest the response."""
    messages = messages_in(given, where, unknown, Role.SYSTEM)
    start = next((n for n, message in enumerate(messages) if message.role is Role.ASSISTANT), None)
    if start is None:
        raise NoChat(f"{where}: no message of an assistant in it")
    own = messages_in(given, where, unknown)[start:]  # what is of no known form counts as the model's here
    return Exchange(messages[:start] or (Message(role=Role.USER),), own)


def has_something(messages: Sequence[Message]) -> bool:
    """Whether there is anything to read."""
    return any(
        message.content.strip() or message.thinking.strip() or message.tool_calls for message in messages
    )


def unread_content(messages: Sequence[Message]) -> str:
    """Say what a judge is shown in another form than it was meant: media by type, and chats as text."""
    counts = Counter(
        mark
        for message in messages
        if "[" in message.content
        for mark in _MARK.findall(message.content)
        if mark in MARKS
    )
    counted = ", ".join(f"{n} {mark}" for mark, n in sorted(counts.items()))
    n_chats = count_unread_chats(messages)
    notes = (
        f"not shown to the judge: {counted}" if counted else "",
        f"judged as text: {n_chats} that look{'s' * (n_chats == 1)} like a chat" if n_chats else "",
    )
    return "; ".join(filter(None, notes))


def count_unread_chats(messages: Sequence[Message]) -> int:
    """Count the texts of a user or the model that look like whole chats and are taken as they stand."""
    spoken = (message.content for message in messages if message.role in (Role.USER, Role.ASSISTANT))
    return sum(map(_looks_like_a_chat, spoken))


def _looks_like_a_chat(text: str) -> bool:
    """Whether a text begins with a turn and has one of each side, or is a chat, whole or broken.

    A fenced block of other code, and a chat with words around it, are ordinary answers; a list of objects
    with a chat's fields may be a chat in a form that is not known.
    """
    if turn := _TURN.match(text.lstrip()):
        sides = {name.lower() in ("user", "human") for name in _TURN.findall(text)}
        return len(sides) > 1 or turn[1].lower() == "assistant"
    if not _LIKE_A_CHAT.match(text):
        return _OBJECTS.match(text) is not None
    value = _value_of(text)
    return is_chat(value) or ("```" not in text and (value is None or _holds_a_chat(value)))


def _holds_a_chat(value: object) -> bool:
    """Whether a value, or one of an object's or a list's, is a chat; or a value is a list of objects."""
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        return True
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return any(map(is_chat, (value, *inner)))


def _value_of(text: str) -> object:
    """Return the value that a text writes, where it looks like a chat's; None where it is broken."""
    if not _LIKE_A_CHAT.match(text):
        return None
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    text = text.lstrip("\ufeff")
    try:
        value = strict_json.loads(text)
    except (ValueError, RecursionError) as error:
        return None if isinstance(error, strict_json.Refused) else _of_python(text.strip())
    return _value_of(value) if isinstance(value, str) else value  # JSON in JSON


def _of_python(text: str) -> object:
    """Return what `repr` wrote; None where it is anything else, or has a key twice in one dict."""
    try:
        tree = ast.parse(text, mode="eval")
        for node in ast.walk(tree):
            keys = [ast.dump(key) for key in node.keys if key] if isinstance(node, ast.Dict) else []
            if len(set(keys)) < len(keys):
                return None
        return json.loads(json.dumps(ast.literal_eval(tree)))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def resembles_chat(value: object) -> bool:
    """Whether a value is a chat, or one that is broken: with a message in it, or a role that is none."""
    if isinstance(value, list):
        return any(isinstance(item, Mapping) and _is_message(item) for item in value)
    return isinstance(value, Mapping) and (_is_message(value) or not AROUND.isdisjoint(value))


def is_chat(value: object) -> bool:
    """Whether a value is a message, a list of messages, or an object around such a list.

    A list of objects is one of messages where one of them is a message of a known form.
    """
    value = _unbatched(value)
    if isinstance(value, list):
        if not value or not all(isinstance(item, Mapping) for item in value):
            return False
        items = list(map(_choice, value))
        return any(map(_is_known, items)) or all(map(_is_message, value))
    if not isinstance(value, Mapping):
        return False
    if _is_message(value):
        return is_spoken(value) or value.get("role", value.get("type")) in (*ROLES, *ITEMS)
    if any(isinstance(value.get(name), list) for name in AROUND):
        return True
    inner = (value.get(name) for name in ("input", "output", "message"))
    return any(is_chat(one) or is_chat(_answer(one)) for one in inner)


def _is_message(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    is_typed = isinstance(kind, str) and (kind in ITEMS or kind in ROLES or kind == "constructor")
    return "role" in value or is_spoken(value) or is_typed


def _is_known(value: object) -> bool:
    """Whether a value is beyond doubt a message: of a known speaker, or an item of OpenAI's Responses."""
    if not isinstance(value, Mapping):
        return False
    if "role" in value:
        return isinstance(value["role"], str) and value["role"] in ROLES
    kind = value.get("type")
    has_content = not {"content", "data", "lc"}.isdisjoint(value)
    return is_spoken(value) or (
        isinstance(kind, str) and (kind in ITEMS or (_is_message(value) and has_content))
    )


def _unbatched(value: object) -> object:
    """Return the one list inside a list, as of a batch of one; any other value is itself."""
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return value


def _choice(item: object) -> object:
    """Return the message of an answer that stands in a list without `choices` around it, else the item."""
    if not isinstance(item, Mapping) or _is_message(item) or not isinstance(item.get("message"), Mapping):
        return item
    return _answer(item) if _is_known(item["message"]) else item


def _listed(items: Sequence[object], where: str, reader: MessageReader, speaker: Role) -> Iterator[Message]:
    """Read the entries of a list; one of no known form is whole beside another that is a message."""
    is_talk = any(map(_is_known, items))
    for number, item in enumerate(items):
        place = f"{where}.{number}"
        if is_talk and isinstance(item, Mapping) and not _is_message(item):
            yield from reader.whole(item, place, speaker)
        else:
            yield from reader.messages(item, place)


def _enclosed(
    given: Mapping[str, Any], where: str, reader: MessageReader, unknown: UnknownContent, speaker: Role
) -> list[Message]:
    """Read a request's or an answer's whole body: system prompt, messages, and all else as JSON."""
    if not any(name in given for name in _LISTS):
        raise NoChat(
            f"{where}: expected a message, or an object with messages; found {', '.join(given)[:80]}"
        )
    messages: list[Message] = []
    for name in _SYSTEM:
        if not quiet.is_nothing(given.get(name)):
            content = given[name]
            is_message = isinstance(content, Mapping) and "parts" in content
            spoken = dict(content) if is_message else {"content": content}
            if spoken.get("role") in (None, "user", "model"):  # Google's may have one of its two roles
                spoken["role"] = "system"
            messages += reader.messages(spoken, f"{where}.{name}")
    for name in _LISTS:
        value = given.get(name)
        if isinstance(value, str):
            role = "assistant" if name in _ANSWERS else "user"
            messages += reader.messages({"role": role, "content": value}, f"{where}.{name}")
            continue
        items = value if isinstance(value, list) else [] if value is None else [value]
        items = list(map(_answer, items)) if name in _ANSWERS else items
        messages += _listed(items, f"{where}.{name}", reader, speaker)
    other_fields = {name: value for name, value in given.items() if name not in (*_SYSTEM, *_LISTS)}
    text = given.get("text")
    if "chat_history" in given and isinstance(text, str):  # an answer of Cohere's first form
        del other_fields["text"]
        if not messages or messages[-1] != Message(role=Role.ASSISTANT, content=text):
            messages += reader.messages({"role": "assistant", "content": text}, f"{where}.text")
    remaining = quiet.remainder(other_fields)
    if remaining is not None and unknown == "refuse":
        raise NoChat(f"{where}: unknown field {next(iter(remaining))!r} beside the messages")  # type: ignore[call-overload]
    if remaining is not None:
        messages.insert(0, Message(role=Role.SYSTEM, content=as_json(remaining)))
    return messages


def _answer(choice: object) -> object:
    """Return one of several answers, its message joined with the fields beside it."""
    if not isinstance(choice, Mapping):
        return choice
    for name in ("message", "content"):
        inner = choice.get(name)
        if isinstance(inner, Mapping):
            beside = {key: value for key, value in choice.items() if key != name}
            return {
                **{f"{key} of the choice" if key in inner else key: beside[key] for key in beside},
                **inner,
            }
    return choice
