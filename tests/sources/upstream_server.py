"""A file server that stands for GitHub, and a source that is read from it."""

import hashlib
import io
import tarfile
from collections.abc import Iterator

import pytest
from local_server import LocalServer, QuietHandler, running

from monitorbench.config.sources import Source, SourceFile
from monitorbench.sources import fetch

CONTENT = b"".join(b'{"row": %d}\n' % number for number in range(20_000))
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Upstream(LocalServer):
    """A file server that can break off, ignore ranges or send something else."""

    content = CONTENT
    break_off_after: tuple[int, ...] = ()
    """Bytes sent before the connection closes, of the first, second … answer."""
    knows_ranges = True
    status = 200

    def __init__(self) -> None:
        super().__init__(_Answer)
        self.asked: list[tuple[str, str]] = []


class _Answer(QuietHandler):
    server: Upstream

    def answer(self, body: bytes) -> None:
        upstream, wanted = self.server, self.headers.get("Range", "")
        number = len(upstream.asked)
        upstream.asked.append((self.path, wanted))
        if upstream.status != 200:
            self.send_error(upstream.status)
            return
        start = int(wanted[len("bytes=") : -1]) if wanted and upstream.knows_ranges else 0
        if start and start >= len(upstream.content):
            self.send_error(416)
            return
        body = upstream.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cuts = upstream.break_off_after
        self.wfile.write(body[: cuts[number]] if number < len(cuts) else body)


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with running(Upstream()) as server:
        monkeypatch.setattr(fetch, "GITHUB_RAW", server.url)
        monkeypatch.setattr(fetch, "GITHUB_ARCHIVES", f"{server.url}/packed")
        yield server


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def source(
    path: str = "data/rows.jsonl",
    *,
    origin: str = "github",
    mirror: str = "rows/rows.jsonl",
    sha256: str = sha(CONTENT),
    revision: str = COMMIT,
) -> Source:
    file = SourceFile(path=path, mirror=mirror, sha256=sha256)
    return Source.model_validate(
        {"origin": origin, "repo": "owner/name", "revision": revision, "licence": "MIT", "files": (file,)}
    )


def archive(*files: tuple[str, bytes]) -> bytes:
    """What GitHub packs: the repository below one folder."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as stream:
        for name, content in files:
            info = tarfile.TarInfo(f"name-{COMMIT}/{name}")
            info.size = len(content)
            stream.addfile(info, io.BytesIO(content))
    return packed.getvalue()
