"""What a user would lose here: whole and right raw files, or one line that says what to do. No network."""

import copy
import gzip
import logging
import re
import tarfile
from pathlib import Path

import pytest
from upstream_server import COMMIT, CONTENT, archive, sha, source, upstream

from monitorbench.config.base import UserError
from monitorbench.config.sources import Source, SourceFile
from monitorbench.sources import fetch

__all__ = ["upstream"]


def found(where: Source, tmp_path: Path, mirror: Path | None = None) -> Path:
    files = fetch.find("rows", where, mirror, tmp_path / "cache", "error")
    return files.matching()[0].path


def test_the_mirror_comes_first_and_nothing_is_asked(upstream, tmp_path):
    """Else an offline machine with all the files could build nothing."""
    (tmp_path / "mirror/rows").mkdir(parents=True)
    (tmp_path / "mirror/rows/rows.jsonl").write_bytes(CONTENT)
    assert found(source(), tmp_path, tmp_path / "mirror").parent == tmp_path / "mirror/rows"
    assert upstream.asked == []


def test_a_file_is_downloaded_at_the_pinned_commit_and_once(upstream, tmp_path, caplog):
    """Else each build would fetch again, or another version than the one the checksum is of."""
    caplog.set_level(logging.INFO)
    path = found(source(), tmp_path, tmp_path / "no-mirror")
    assert path.read_bytes() == CONTENT
    assert found(source(), tmp_path) == path
    assert upstream.asked == [(f"/owner/name/{COMMIT}/data/rows.jsonl", "")]
    assert f"rows.jsonl: {len(CONTENT)}/{len(CONTENT)}" in caplog.text
    assert not list(path.parent.glob("*.part"))


def test_a_download_that_breaks_off_goes_on_where_it_stopped(upstream, tmp_path):
    """Else a shaky line never gets a large file whole, or half a file passes for all of it."""
    upstream.break_off_after = (100_000, 50_000)
    assert found(source(), tmp_path).read_bytes() == CONTENT
    assert [asked for _, asked in upstream.asked] == ["", "bytes=100000-", "bytes=150000-"]


def test_the_next_run_goes_on_too(upstream, tmp_path):
    """Else what an interrupted run had fetched would be lost."""
    upstream.break_off_after = (100_000, 0, 0)
    with pytest.raises(UserError, match=r"broke off after 100000 bytes.*run again to resume it"):
        found(source(), tmp_path)
    upstream.asked.clear()
    upstream.break_off_after = ()
    assert found(source(), tmp_path).read_bytes() == CONTENT
    assert [asked for _, asked in upstream.asked] == ["bytes=100000-"]


def test_a_server_that_ignores_ranges_starts_over(upstream, tmp_path):
    """Else the whole file would be glued to its first half."""
    upstream.break_off_after, upstream.knows_ranges = (100_000,), False
    assert found(source(), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("left", [b"x" * 1000, CONTENT + b"more", CONTENT[:-1] + b"x"])
def test_a_wrong_part_starts_clean(upstream, tmp_path, left):
    """Else one bad byte from a broken download would stop every later run."""
    part = tmp_path / f"cache/rows/{COMMIT}/data/rows.jsonl.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    assert found(source(), tmp_path).read_bytes() == CONTENT


def test_a_part_of_a_moving_revision_is_not_gone_on_with(upstream, tmp_path):
    """Else halves of two versions would make one file where no checksum tells."""
    part = tmp_path / "cache/rows/main/data/rows.jsonl.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"of another version")
    assert found(source(revision="main", sha256=""), tmp_path).read_bytes() == CONTENT


def test_wrong_bytes_are_refused_and_not_kept(upstream, tmp_path):
    """Else a changed upstream would silently change a data set."""
    upstream.content = CONTENT[:-2] + b"!\n"
    with pytest.raises(UserError, match=r"rows: no file data/rows.jsonl: .*another checksum"):
        found(source(), tmp_path)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_the_checksum_of_a_gzipped_file_is_of_its_content(upstream, tmp_path):
    """Else recompressing a mirror would count as another data set."""
    upstream.content = gzip.compress(CONTENT, mtime=1)
    path = found(source("data/rows.jsonl.gz"), tmp_path)
    assert gzip.decompress(path.read_bytes()) == CONTENT
    path.unlink()
    upstream.content = upstream.content[:-100]
    with pytest.raises(UserError, match="another checksum"):
        found(source("data/rows.jsonl.gz"), tmp_path)


def test_what_upstream_no_longer_has_is_one_line_that_says_what_to_set(upstream, tmp_path):
    """Else a reader of a traceback would not know that a mirror would do."""
    upstream.status = 404
    with pytest.raises(UserError) as error:
        found(source(), tmp_path)
    assert re.fullmatch(
        r"rows: no file data/rows\.jsonl: HTTP 404 .*; set MONITORBENCH_SOURCES=DIR with "
        r"DIR/rows/rows\.jsonl \(upstream: github\.com/owner/name\)",
        str(error.value),
    )
    assert len(upstream.asked) == 1


def test_no_network_is_one_line(monkeypatch, tmp_path):
    """Else an offline machine would see a stack of urllib."""
    monkeypatch.setattr(fetch, "GITHUB_RAW", "http://127.0.0.1:1")
    with pytest.raises(
        UserError, match=r"the download failed \(.*refused.*MONITORBENCH_SOURCES=DIR"
    ) as error:
        found(source(), tmp_path)
    sent = copy.copy(error.value)  # made anew, as where a worker hands it to the process that started it
    assert (type(sent), str(sent), sent.why) == (fetch.MissingFileError, str(error.value), error.value.why)


def test_a_full_or_forbidden_disk_is_one_line(upstream, tmp_path):
    """Else a full disk would look like a network fault."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(UserError, match="can't be kept in"):
        found(source(), tmp_path)


@pytest.mark.parametrize("mirrored", [None, b"too short"])
def test_what_only_a_mirror_has_says_where_upstream_is(tmp_path, mirrored):
    """Else nobody could tell where to get a repacked file from, or that it is broken."""
    where = source("", origin="none")
    if mirrored is None:
        with pytest.raises(UserError, match=r"rows/rows\.jsonl: only a local mirror .*upstream: owner/name"):
            found(where, tmp_path, tmp_path)
    else:
        (tmp_path / "rows").mkdir()
        (tmp_path / "rows/rows.jsonl").write_bytes(mirrored)
        with pytest.raises(UserError, match="sha256 is"):
            found(where, tmp_path, tmp_path)


CWEVAL = "cweval/pairs.jsonl.gz"


def repacked(sha256: str, *, members: str = "") -> Source:
    file = SourceFile(path="", mirror=CWEVAL, sha256=sha256, members=members)
    return source().model_copy(update={"files": (file,)})


def test_what_is_repacked_is_made_of_the_archive_once(upstream, tmp_path):
    """Else a machine without a mirror could read only what upstream has in the readers' form."""
    core = "benchmark/core/c/cwe_020_0_c"
    upstream.content = archive((f"{core}_task.c", b"safe"), (f"{core}_unsafe.c", b"not"))
    line = (
        '{"id": "cwe_020_0_c", "language": "c", "cwe": "CWE-20", "secure": "safe", "insecure": "not", '
        f'"path_secure": "{core}_task.c", "path_insecure": "{core}_unsafe.c"}}\n'
    )
    where = repacked(sha(line.encode()))
    assert found(where, tmp_path).read_text() == line
    assert found(where, tmp_path, tmp_path / "no-mirror").name == "pairs.jsonl"
    assert [path for path, _ in upstream.asked] == [f"/packed/owner/name/tar.gz/{COMMIT}"]


def test_records_with_another_checksum_are_not_handed_out(upstream, tmp_path):
    """Else upstream's archive, packed another way some day, would be another data set in silence."""
    upstream.content = archive(("benchmark/core/c/README", b"moved"))
    for where in (repacked(sha(b"line"), members="benchmark"), repacked(sha(b"line"))):
        with pytest.raises(UserError, match=r"another checksum than conf/source says; set MONITORBENCH_S"):
            found(where, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "archive.tar.gz"]


def test_an_archive_is_known_by_its_members(upstream, tmp_path):
    """Else only the mirror's own packing of a folder would do, which nobody can fetch."""
    upstream.content = archive(("data/a.json", b"1"), ("b.json", b"2"))
    digest = sha(f"a.json\0{sha(b'1')}\n".encode())
    path = found(repacked(digest, members="data"), tmp_path)
    assert path.read_bytes() == upstream.content
    (tmp_path / "mirror/cweval").mkdir(parents=True)
    with tarfile.open(tmp_path / "mirror" / CWEVAL, "w:gz") as stream:
        info = tarfile.TarInfo("data/a.json")
        stream.addfile(info)
    with pytest.raises(UserError, match="sha256 is"):
        found(repacked(digest, members="data"), tmp_path, tmp_path / "mirror")


def test_the_hub_is_asked_for_the_pinned_revision(monkeypatch, tmp_path):
    """Else a dataset would follow whatever the hub's main branch is today."""
    import huggingface_hub

    asked = {}

    def download(repo: str, path: str, **options: str) -> str:
        asked.update(options, repo=repo, path=path)
        (tmp_path / "got.jsonl").write_bytes(CONTENT)
        return str(tmp_path / "got.jsonl")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert found(source(origin="hub"), tmp_path).read_bytes() == CONTENT
    assert asked == {
        "repo": "owner/name",
        "path": "data/rows.jsonl",
        "repo_type": "dataset",
        "revision": COMMIT,
    }


def test_a_file_of_another_repository_comes_from_there(upstream, tmp_path):
    """Else a source whose files are in two places could be read from a mirror only."""
    elsewhere = SourceFile(
        path="more.jsonl", mirror="", sha256=sha(CONTENT), repo="other/copy", revision="f" * 40
    )
    both = source().model_copy(update={"files": (*source().files, elsewhere)})
    fetch.find("rows", both, None, tmp_path / "cache", "error")
    assert [path for path, _ in upstream.asked] == [
        f"/owner/name/{COMMIT}/data/rows.jsonl",
        f"/other/copy/{'f' * 40}/more.jsonl",
    ]
    upstream.status = 404
    with pytest.raises(UserError, match=r"upstream: github\.com/other/copy"):
        fetch.find("rows", both.model_copy(update={"files": (elsewhere,)}), None, tmp_path, "error")
    with pytest.raises(ValueError, match="belong together"):
        SourceFile(path="more.jsonl", mirror="", sha256="", repo="other/copy")


def test_the_hub_offline_is_one_line(monkeypatch, tmp_path):
    """Else the hub client's paragraph about outgoing traffic would be all a user sees."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError) as error:
        found(source(origin="hub"), tmp_path)
    assert str(error.value) == (
        "rows: no file data/rows.jsonl: not cached, and the hub can't be reached; set "
        "MONITORBENCH_SOURCES=DIR with DIR/rows/rows.jsonl (upstream: hub dataset owner/name)"
    )


@pytest.mark.parametrize("origin", ["none", "hub"])
def test_a_mirror_that_does_not_exist_is_named(monkeypatch, tmp_path, origin):
    """Else a user with a typo in MONITORBENCH_SOURCES is told to set what they have set."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError) as error:
        fetch.find("rows", source(origin=origin), tmp_path / "nonexistent", tmp_path, "error")
    message = str(error.value)
    assert f"the folder {tmp_path / 'nonexistent'} that MONITORBENCH_SOURCES" in message
    assert "does not exist" in message
    assert "rows/rows.jsonl" in message
    assert "set MONITORBENCH_SOURCES=DIR" not in message


def test_a_gated_dataset_says_so(monkeypatch, tmp_path):
    """Else a missing token would look like a missing file."""
    import httpx
    import huggingface_hub
    from huggingface_hub.errors import GatedRepoError

    def refuse(*args: str, **options: str) -> str:
        request = httpx.Request("GET", "http://hub")
        raise GatedRepoError("403 Client Error\nlong text", response=httpx.Response(403, request=request))

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)
    with pytest.raises(UserError, match="gated: accept its terms on the hub and set HF_TOKEN"):
        found(source(origin="hub"), tmp_path)


def test_identity_is_of_content_alone(tmp_path):
    """Else moving or recompressing a mirror would name another data set, or other bytes the same."""
    names = []
    for folder, name, content, stated in [
        ("a", "rows.jsonl", CONTENT, sha(CONTENT)),
        ("b", "rows.jsonl", CONTENT, ""),
        ("c", "rows.jsonl.gz", gzip.compress(CONTENT), ""),
        ("d", "rows.jsonl", CONTENT + b"{}\n", ""),
    ]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(content)
        where = source(mirror=name, sha256=stated)
        names.append(fetch.find("rows", where, tmp_path / folder, tmp_path, "error").identity())
    assert names[0] == names[1] == names[2] != names[3]
    assert names[0] == {"name": "rows", "revision": COMMIT, "files": [sha(CONTENT)]}


def test_a_teams_folder_is_read_in_order(tmp_path):
    """Else ids and splits would depend on the file system's order."""
    for name in ("b.jsonl", "a/c.jsonl.gz", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    files = fetch.local("jsonl", tmp_path, (".jsonl", ".jsonl.gz"), "error")
    assert [file.config.path for file in files.matching()] == ["a/c.jsonl.gz", "b.jsonl"]
    (tmp_path / "empty").mkdir()
    for missing in (tmp_path / "nothing", tmp_path / "empty"):
        with pytest.raises(UserError, match=r"set dataset\.path"):
            fetch.local("jsonl", missing, (".jsonl",), "error")
