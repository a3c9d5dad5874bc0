"""Body of `POST /guardrail` and `POST /judge`: a request and a response, or a trajectory, as JSON."""

from typing import NamedTuple

from monitorbench.cells import wrong_name
from monitorbench.conversations.chats import Exchange, has_something, messages_in, trajectory_in
from monitorbench.conversations.read import NoChat, UnknownContent
from monitorbench.judging.judge import sample_of
from monitorbench.records import Message, Role, Sample
from monitorbench.strict_json import loads

_LONGEST_NAME = 200
_FIELDS = ("id", "request", "response", "trajectory", "category")


class AskedExchange(NamedTuple):
    """One exchange to judge."""

    id: str
    """The caller's name for it; empty where there is none."""
    exchange: Exchange
    category: str | None


def json_in(body: bytes) -> object:
    """The JSON value of a body; raises `NoChat` where it is none."""
    try:
        return loads(body)
    except (ValueError, RecursionError) as error:
        raise NoChat(f"body: no JSON ({' '.join(str(error).split())[:120]})") from error


def asked_in(value: object, unknown: UnknownContent) -> AskedExchange:
    """Read a body's JSON value; raises `NoChat` for a field that has no place in it, in one line.

    `request` and `response` are each a text or messages, `trajectory` is messages; `id` and `category` are
    texts, and may be absent.
    """
    if not isinstance(value, dict):
        raise NoChat("body: expected an object with request and response, or trajectory")
    if surplus := sorted(set(value) - set(_FIELDS)):
        raise NoChat(f"{surplus[0][:40]!r}: no such field; expected {', '.join(_FIELDS)}")
    fields = {name for name in ("request", "response", "trajectory") if value.get(name) is not None}
    if fields == {"trajectory"}:
        exchange = trajectory_in(value["trajectory"], "trajectory", unknown)
    elif fields == {"request", "response"}:
        exchange = Exchange(
            _turns(value["request"], Role.USER, "request", unknown),
            _turns(value["response"], Role.ASSISTANT, "response", unknown),
        )
    else:
        missing = {"request", "response"} - fields
        conflict = "both trajectory and request or response" if "trajectory" in fields else ""
        raise NoChat(
            f"{conflict or ' and '.join(sorted(missing)) + ': missing'}; expected request and response, or "
            "trajectory alone"
        )
    return AskedExchange(_name(value.get("id"), "id"), exchange, category_in(value.get("category")))


def category_in(given: object) -> str | None:
    """A category's name, or None; raises `NoChat` for what is no name."""
    name = _name(given, "category")
    if name and (reason := wrong_name(name)):
        raise NoChat(f"category: {reason}")
    return name or None


def sample_asked(exchange: Exchange, category: str | None) -> Sample:
    """The exchange as a sample; its label says nothing. Raises `NoChat` where there is nothing to judge."""
    if not has_something(exchange.response):
        raise NoChat("response: nothing in it")
    sample = sample_of(exchange.request, exchange.response)
    return sample.model_copy(update={"category": category}) if category else sample


def _turns(given: object, role: Role, where: str, unknown: UnknownContent) -> tuple[Message, ...]:
    if isinstance(given, str):
        return (Message(role=role, content=given),)
    return messages_in(given, where, unknown)


def _name(given: object, where: str) -> str:
    if given is None:
        return ""
    if not isinstance(given, str) or len(given) > _LONGEST_NAME:
        raise NoChat(f"{where}: expected a text of at most {_LONGEST_NAME} characters")
    return given
