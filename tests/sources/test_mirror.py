"""What a user would lose here: a mirror that is whole, or a list of what it lacks and why."""

import gzip
from pathlib import Path

import pytest
from command import Done, script
from studies import study
from upstream_server import COMMIT, CONTENT, Upstream, archive, sha, source, upstream

from monitorbench.config.base import UserError
from monitorbench.config.datasets import Ingredient
from monitorbench.config.sources import Source, SourceFile
from monitorbench.sources.mirror import fill, mirror

__all__ = ["upstream"]


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def two(mirror: str = "rows/rows.jsonl.gz", sha256: str = sha(CONTENT)) -> dict[str, Source]:
    other = source().model_copy(
        update={"files": (SourceFile(path="more/other.jsonl", mirror="other/o.jsonl", sha256=""),)}
    )
    return {"rows": source(mirror=mirror, sha256=sha256), "other": other}


def test_a_mirror_is_filled_once_and_checked_every_time(upstream: Upstream, tmp_path: Path):
    """Else each run fetches everything anew, or a file that rotted stays."""
    rows, other = fill(two(), tmp_path)
    assert (rows.there, rows.fetched, rows.missing) == (0, 1, [])
    assert (other.fetched, other.unchecked) == (1, 1)
    assert gzip.decompress((tmp_path / "rows/rows.jsonl.gz").read_bytes()) == CONTENT
    assert (tmp_path / "other/o.jsonl").read_bytes() == CONTENT
    assert files_of(tmp_path) == ["other/o.jsonl", "rows/rows.jsonl.gz"]
    before = (tmp_path / "rows/rows.jsonl.gz").read_bytes()
    assert [(one.there, one.fetched) for one in fill(two(), tmp_path)] == [(1, 0), (1, 0)]
    assert len(upstream.asked) == 2
    (tmp_path / "rows/rows.jsonl.gz").write_bytes(before[:-9])
    assert [(one.there, one.fetched) for one in fill(two(), tmp_path)] == [(0, 1), (1, 0)]
    assert (tmp_path / "rows/rows.jsonl.gz").read_bytes() == before, "compressing is not deterministic"


def test_what_breaks_off_goes_on_and_a_wrong_file_is_no_part_of_a_mirror(upstream: Upstream, tmp_path: Path):
    """Else a shaky line starts over for ever, or a mirror holds what no build accepts."""
    upstream.break_off_after = (1000, 500, 500)
    first, _ = fill(two(), tmp_path)
    assert first.missing == [
        "rows: data/rows.jsonl: the download broke off after 2000 bytes; run again to resume it"
    ]
    assert "rows/rows.jsonl.gz" not in files_of(tmp_path)
    again, _ = fill(two(), tmp_path)
    assert again.fetched == 1
    assert (f"/owner/name/{COMMIT}/data/rows.jsonl", "bytes=2000-") in upstream.asked
    wrong, right = fill(two("rows/wrong.jsonl", sha(b"other")), tmp_path)
    assert len(wrong.missing) == 1
    assert "another checksum" in wrong.missing[0]
    assert right.there == 1
    assert not (tmp_path / "rows/wrong.jsonl").exists()


def test_the_command_says_in_one_line_what_it_needs(tmp_path: Path):
    """Else a mistyped command fills no folder, or a wrong one, in silence."""

    def run(*overrides: str) -> Done:
        return script("data_build/mirror.py", f"paths.data={tmp_path}", *overrides, folder=tmp_path)

    none = run("dataset=paper", "paths.sources=null")
    assert none.returncode == 1
    assert none.stderr.strip().endswith("no mirror to fill; set MONITORBENCH_SOURCES=DIR")
    starter = run("dataset=starter", f"paths.sources={tmp_path}/mirror")
    assert starter.returncode == 1
    assert "dataset=starter: it reads no upstream files; expected dataset=paper" in starter.stderr


def test_an_archives_records_stand_in_the_mirror_under_their_name(upstream: Upstream, tmp_path: Path):
    """Else what was made of an archive would be made again by every machine."""
    core = "benchmark/core/c/cwe_020_0_c"
    upstream.content = archive((f"{core}_task.c", b"safe"), (f"{core}_unsafe.c", b"not"))
    file = SourceFile(path="", mirror="cweval/pairs.jsonl.gz", sha256="")
    made = fill({"cweval": source().model_copy(update={"files": (file,)})}, tmp_path)
    assert made[0].fetched == 1
    assert b'"secure": "safe"' in gzip.decompress((tmp_path / "cweval/pairs.jsonl.gz").read_bytes())


def test_the_mirror_command_fails_where_a_file_is_missing(
    upstream: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Else a lab learns on the cluster, without a network, that its mirror has holes."""
    upstream.status = 404
    one = study("dataset=paper", f"paths.sources={tmp_path}")
    dataset = one.dataset.model_copy(update={"sources": {"rows": Ingredient(benchmark=True, max_share=1.0)}})
    with pytest.raises(UserError, match="1 files are missing, named above"):
        mirror(one.model_copy(update={"dataset": dataset, "source": two()}))
    assert "rows: data/rows.jsonl: HTTP 404 Not Found" in capsys.readouterr().out
    upstream.status = 200
    assert mirror(one.model_copy(update={"dataset": dataset, "source": two()})) == tmp_path
    assert files_of(tmp_path) == ["rows/rows.jsonl.gz"]
