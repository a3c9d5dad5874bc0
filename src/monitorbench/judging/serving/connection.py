"""A connection of our servers, below HTTP: heads that come in time, and JSON for what is no HTTP."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitorbench.judging.serving.refusal import Refusal, Refused, reply

SECONDS_TO_SEND = 30.0
"""A connection that says nothing for so long is closed; a head that has begun, and then its body, is whole by
then or refused."""
TRUNCATED = "is_truncated"
"""Key of a request's state: its client ended the connection within the body."""


class Connection(H11Protocol):
    """A connection whose heads have to be whole in time, and that answers in JSON to what is no HTTP."""

    def __init__(self, refused: Refused, **given: Any) -> None:
        super().__init__(**given)
        self._refused = refused
        self._head: asyncio.TimerHandle | None = None
        self._is_half_closed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        self._watch_head()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a connection whose client sends no more and waits for its answer."""
        self._is_half_closed = True
        if self._is_answering and self.cycle.more_body:
            self.cycle.scope["state"][TRUNCATED] = True
            self.cycle.more_body = False
            self.cycle.message_event.set()
        return self._is_answering

    def on_response_complete(self) -> None:
        """See `H11Protocol`."""
        super().on_response_complete()
        if self._is_half_closed and not self._is_answering:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        super().connection_lost(exc)
        self._watch_head()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP request, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refusal = Refusal(400, "no HTTP request, or a head that is too long")
            answer = reply(self._refused("", refusal), closes=True)
            head = h11.Response(
                status_code=answer.status_code, headers=answer.raw_headers, reason=b"Bad Request"
            )
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def _is_answering(self) -> bool:
        """Whether a request waits for its answer."""
        return self.cycle is not None and not self.cycle.response_complete

    def _watch_head(self) -> None:
        """Close the connection in `SECONDS_TO_SEND` unless a request's head is whole by then."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            if self._head is not None:
                self._head.cancel()
            self._head = None
        elif self._head is None:
            self._head = self.loop.call_later(SECONDS_TO_SEND, self.transport.close)
