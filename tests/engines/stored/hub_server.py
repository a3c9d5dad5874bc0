"""A hub on this machine, as its client sees one: a model repository with commits, and branches on them."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_server import LocalServer, QuietHandler, running

COMMITS = ("a" * 40, "b" * 40)


class Hub:
    """What the hub has: `repo`'s files at each commit, and which commit `main` is."""

    def __init__(self, repo: str, commits: dict[str, Path], main: str) -> None:
        self.repo, self.commits, self.main = repo, commits, main
        self.asked: list[str] = []
        self.url = ""


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve it for as long as the body runs, at `hub.url`."""

    class Handler(QuietHandler):
        def _reply(self, content: bytes, **headers: str) -> None:
            self.send_response(200)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def answer(self, body: bytes) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(path)
            if path == f"/api/models/{hub.repo}/revision/main":
                return self._reply(json.dumps({"id": hub.repo, "sha": hub.main, "siblings": []}).encode())
            for commit, folder in hub.commits.items():
                if path == f"/api/models/{hub.repo}/tree/{commit}":
                    return self._reply(
                        json.dumps([_entry(file) for file in sorted(folder.iterdir())]).encode()
                    )
                start = f"/{hub.repo}/resolve/{commit}/"
                if path.startswith(start) and (folder / path.removeprefix(start)).is_file():
                    content = (folder / path.removeprefix(start)).read_bytes()
                    large = path.endswith(".gguf")  # the hub names what Git LFS keeps by its SHA-256
                    named = hashlib.sha256(content).hexdigest() if large else _oid(content)
                    return self._reply(content, ETag=f'"{named}"', X_Repo_Commit=commit)
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None

    with running(LocalServer(Handler)) as server:
        hub.url = server.url
        yield hub


def _entry(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    return {"type": "file", "path": file.name, "size": len(content), "oid": _oid(content)}


def _oid(content: bytes) -> str:
    """The name that Git gives a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
