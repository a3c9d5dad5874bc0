"""HTTP servers on this machine that stand for somebody else's: what they have in common."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar


class QuietHandler(http.server.BaseHTTPRequestHandler):
    """Gives each request to `answer`, and writes no line of it on stderr."""

    disable_nagle_algorithm = True  # a body would wait 40 ms for the client to have its headers

    def answer(self, body: bytes) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.answer(b"")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, format: str, *args: object) -> None:
        pass


class LocalServer(http.server.ThreadingHTTPServer):
    """Listens on a free port; a client that goes away is part of the play."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, handler: type[QuietHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


Server = TypeVar("Server", bound=LocalServer)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Run the server in a thread while the body runs."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
