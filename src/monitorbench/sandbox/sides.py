"""The two locked processes of a program: the candidate answers calls, the check makes them and judges.

They share two pipes and no memory. The candidate's process never holds the check nor the pipe that verdicts
go through: it is told the names the check uses, then the arguments of its calls. What it answers reaches the
check as plain data built there (`values`). So whatever it reads or does to builtins, frames, modules, objects
or memory, it passes by right answers only.
"""

import ast
import builtins
import contextlib
import marshal
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from monitorbench.sandbox import values
from monitorbench.sandbox.lock import imported_modules, lock

PASSED, FAILED, UNAVAILABLE = b"passed\n", b"failed\n", b"unavailable\n"
"""How an answer of the check begins; a line of detail follows."""
GONE = 3
"""Exit code of the check's process where the candidate's has ended, or no longer answers."""
_DETAIL_LENGTH = 200


class Pipes(NamedTuple):
    """One side's ends: what it reads and what it writes."""

    reads: int
    writes: int


def part_of_candidate(code: str) -> bytes:
    """Serialise what the candidate's process is given."""
    return marshal.dumps(code)


def part_of_check(code: str, check: str, entry: str) -> bytes:
    """Serialise what the check's process is given; it loads the standard modules of `code`."""
    return marshal.dumps((code, check, entry))


def answer_calls(part: bytes, pipes: Pipes) -> int:
    """The candidate's process: lock it, run its code, then answer calls until the check is over."""
    code = marshal.loads(part)
    try:
        lock(imported_modules(code))
    except (OSError, ValueError, MemoryError) as error:
        values.send(pipes.writes, {"unavailable": f"{type(error).__name__}: {error}"})
        return 0
    values.send(pipes.writes, {"locked": True})
    referred: list[Any] = []

    def refer(value: Any) -> int:
        referred.append(value)
        return len(referred) - 1

    namespace: dict[str, Any] = {"__name__": "candidate"}
    try:
        exec(compile(code, "<candidate>", "exec"), namespace)
        names = values.receive(pipes.reads)
        defined = {name: _shown(namespace[name], refer) for name in names if name in namespace}
        values.send(pipes.writes, {"defined": defined})
    except BaseException as error:
        values.send(pipes.writes, _raised(error))
        return 0
    while True:
        call = values.receive(pipes.reads)
        try:
            function = namespace[call["name"]] if "name" in call else referred[call["number"]]
            given, named = (
                values.decode(call[part], referred.__getitem__, trusted=True) for part in ("given", "named")
            )
            result = values.encode(function(*given, **named), refer)
            # A function may change what it is given; the check then sees the change as well.
            reply = {"result": result, "given": values.encode(given, refer)}
            values.send(pipes.writes, reply)
        except BaseException as error:
            values.send(pipes.writes, _raised(error))


def judge(part: bytes, pipes: Pipes, answers: int) -> int:
    """The check's process: lock it, run its check on the candidate's names, say to `answers` how it ended.

    Returns the process's exit code.
    """
    code, check, entry = marshal.loads(part)
    try:
        lock(sorted({*imported_modules(code), *imported_modules(check)}))
    except (OSError, ValueError, MemoryError) as error:
        os.write(answers, UNAVAILABLE + f"{type(error).__name__}: {error}".encode())
        return 0
    try:
        first = _reply(pipes)
        if "locked" not in first:
            os.write(answers, UNAVAILABLE + str(first.get("unavailable")).encode())
            return 0
        names = _used_names(check, entry)
        _ask(pipes, names)
        namespace: dict[str, Any] = {"__name__": "check"} | dict(_defined(_reply(pipes), names, pipes))
        exec(compile(check, "<check>", "exec"), namespace)
    except _Gone:
        return GONE
    except BaseException as error:
        os.write(answers, FAILED + _line(error).encode("utf-8", "replace"))
    else:
        os.write(answers, PASSED)
    return 0


def _used_names(check: str, entry: str) -> "list[str]":
    """The names that a check may need of a candidate: those it reads, but no builtin one except `entry`.

    Else a candidate's own `abs` or `all` would take the place of the check's.
    """
    try:
        nodes = ast.walk(ast.parse(check))
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        read = set()
    allowed = {name for name in read if not hasattr(builtins, name) and not name.startswith("__")}
    return sorted(allowed | ({entry} & read))


class _Gone(BaseException):
    """The candidate's process has ended, or no longer answers."""


def _shown(value: Any, refer: Callable[[Any], int]) -> Any:
    """How a name is told to the check: a module by its name, what can be called, or a value."""
    if isinstance(value, types.ModuleType):
        return {"module": value.__name__}
    if callable(value):
        return {"callable": True}
    return {"value": values.encode(value, refer)}


def _raised(error: BaseException) -> "dict[str, list[str]]":
    return {"raised": [type(error).__name__, _text(error)]}


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_DETAIL_LENGTH]
    except BaseException:
        return "an error that can't be shown"


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {_text(error)}"[:_DETAIL_LENGTH]


def _defined(reply: "dict[str, Any]", names: "list[str]", pipes: Pipes) -> "Iterator[tuple[str, Any]]":
    """Each name the candidate defined, as the check has it: a call over the pipe, a module, a value."""
    defined = reply.get("defined")
    if not isinstance(defined, dict):
        raise values.BadMessage("no names")
    for name in names:
        match defined.get(name):
            case {"callable": True}:
                yield name, _Call({"name": name}, pipes)
            # Its own module of that name, which the candidate never touched.
            case {"module": str(module)} if module == name and name in sys.stdlib_module_names:
                if name in sys.modules:
                    yield name, sys.modules[name]
            case {"value": value}:
                yield name, values.decode(value, _calls(pipes), trusted=False)


class _Call(values.Reference):
    """Something of the candidate's: called, the candidate answers; handed back, it is itself again there."""

    def __init__(self, what: "dict[str, Any]", pipes: Pipes) -> None:
        super().__init__(what.get("number", -1))
        self._what, self._pipes = what, pipes

    def __call__(self, *given: Any, **named: Any) -> Any:
        message = {"given": values.encode(list(given), _refuse), "named": values.encode(named, _refuse)}
        _ask(self._pipes, {**self._what, **message})
        reply = _reply(self._pipes)

        resolve = _calls(self._pipes)
        if reply.get("given") != message["given"]:
            _change(given, values.decode(reply.get("given"), resolve, trusted=False))
        return values.decode(reply.get("result"), resolve, trusted=False)


def _calls(pipes: Pipes) -> Callable[[int], _Call]:
    return lambda number: _Call({"number": number}, pipes)


def _refuse(value: Any) -> int:
    raise TypeError(f"a check can't give a candidate a {type(value).__name__}")


def _ask(pipes: Pipes, message: Any) -> None:
    """Send a message; where the candidate has gone, what it said last is still to be read."""
    with contextlib.suppress(BrokenPipeError):
        values.send(pipes.writes, message)


def _reply(pipes: Pipes) -> "dict[str, Any]":
    """The candidate's next message; raises what it raised, or `_Gone`."""
    try:
        reply = values.receive(pipes.reads)
    except EOFError as error:
        raise _Gone from error
    if not isinstance(reply, dict):
        raise values.BadMessage("no reply")
    match reply.get("raised"):
        case [str(kind), str(text)]:
            raise _exception(kind, text)
    return reply


def _exception(kind: str, text: str) -> BaseException:
    """The exception of that name, so that a check that expects it meets it; a stranger's name is kept.

    Of StopIteration it is a RuntimeError, as Python does for generators: `all(map(…))` takes it for the end.
    """
    known = getattr(builtins, kind, None)
    if known in (StopIteration, StopAsyncIteration):
        return RuntimeError(f"the candidate raised {kind}")
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            return known(text)
        except TypeError:  # UnicodeDecodeError wants five arguments
            pass
    name = kind if kind.isidentifier() else "Exception"
    base = BaseException if isinstance(known, type) and issubclass(known, BaseException) else Exception
    made: BaseException = type(name, (base,), {})(text)
    return made


def _change(given: "tuple[Any, ...]", changed: Any) -> None:
    """Give the caller's lists, dictionaries and sets the content they have at the candidate's side."""
    if not isinstance(changed, list) or len(changed) != len(given):
        raise values.BadMessage("no arguments")
    for own, new in zip(given, changed, strict=True):
        if type(own) is not type(new):
            continue
        if isinstance(own, list):
            own[:] = new
        elif isinstance(own, dict | set):
            own.clear()
            own.update(new)
