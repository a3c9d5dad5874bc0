"""What a user would lose here: HotPotQA and ALFWorld from their public places, whole and right, or one line.

A local server stands for the public one. The games are real ones of the mirror; the rows are written here.
"""

import hashlib
import io
import json
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from local_server import running
from pydantic import TypeAdapter
from upstream_server import Upstream

from monitorbench.config.base import UserError
from monitorbench.config.pilot import Environments
from monitorbench.config.reference import option
from monitorbench.intervention.environments.alfworld import read_games
from monitorbench.intervention.environments.published_questions import read_search_questions
from monitorbench.intervention.environments.tasks import open_tasks

ROW = {
    "id": "q{}",
    "question": "Who made  the film number {}?",
    "answer": "Ann {}",
    "supporting_facts": {"title": ["Film", "Ann"], "sent_id": [0, 0]},
    "context": {
        "title": ["Film", "Ann", "Moon", "Sea"],
        "sentences": [["A film.", " By Ann."], ["Ann is known."], ["The moon."], ["The sea.", " It is wet."]],
    },
}


@pytest.fixture
def place() -> Iterator[Upstream]:
    with running(Upstream()) as server:
        yield server


def settings(root: Path, tmp_path: Path, name: str, sha256: str, port: int) -> Any:
    """`conf/environment/NAME.yaml` with a local address in its public one's place."""
    tree = option("environment", name)
    file = tree["source"]["files"][0]
    file["sha256"] = sha256
    file["url"] = re.sub(r"https://[^/]+", f"http://127.0.0.1:{port}", file["url"])
    tree |= {"mirror": None, "cache": str(tmp_path / "cache")}
    adapter: TypeAdapter[Any] = TypeAdapter(Environments)
    return adapter.validate_json(json.dumps(tree))


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hotpot(**changed: object) -> bytes:
    rows = [
        {key: value.format(n) if isinstance(value, str) else value for key, value in (ROW | changed).items()}
        for n in range(40)
    ]
    packed = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), packed)
    return packed.getvalue()


@pytest.fixture(scope="module")
def games() -> bytes:
    """A zip as the release's, of a few real games."""
    mirror = os.environ.get("MONITORBENCH_SOURCES")
    if not mirror:
        pytest.skip("MONITORBENCH_SOURCES is not set")
    packed, kept = io.BytesIO(), dict.fromkeys(("valid_train", "valid_seen", "valid_unseen"), 0)
    path = Path(mirror) / "alfworld_games/alfworld_474_games.tar.xz"
    with tarfile.open(path) as archive, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for member in archive:
            split = next((part for part in member.name.split("/") if part in kept), "")
            stream = archive.extractfile(member) if split and kept[split] < 2 else None
            if stream is not None and member.name.endswith("game.tw-pddl"):
                kept[split] += 1
                name = member.name.removeprefix("alfworld_data/").replace("/valid_train/", "/train/")
                out.writestr(name, stream.read())
        out.writestr("../../outside/valid_unseen/x.txt", "no game")
    return packed.getvalue()


def test_hotpotqa_resumes_and_is_asked_among_its_own_paragraphs(root, tmp_path, place):
    """Else the distractor setting would be another one, or a shaky line never gets it whole."""
    place.content, place.break_off_after = hotpot(), (1000,)
    found = settings(root, tmp_path, "hotpotqa_dev", sha(place.content), place.server_port)
    questions = read_search_questions(found)
    assert [wanted for _, wanted in place.asked] == ["", "bytes=1000-"]
    assert len(questions) == 40
    assert questions[3].text == "Who made the film number 3?"
    assert questions[3].paragraphs == ("Film: A film. By Ann.", "Ann: Ann is known.")
    assert questions[3].distracting == ("Moon: The moon.", "Sea: The sea. It is wet.")
    for opened in open_tasks(found, 3, 0, "pilot"):
        environment = opened()
        environment.reset()
        assert environment.step("search[moon]").text == "Moon: The moon."
        for action in environment.solution():
            seen = environment.step(action)
        assert seen.done
        assert seen.success
    assert len(place.asked) == 2


def test_an_interrupted_download_goes_on_in_the_next_run(root, tmp_path, place):
    """Else what an interrupted run had fetched would be lost."""
    place.content, place.break_off_after = hotpot(), (1000, 0, 0)
    found = settings(root, tmp_path, "hotpotqa_dev", sha(place.content), place.server_port)
    with pytest.raises(UserError, match=r"broke off after 1000 bytes.*run again to resume it"):
        read_search_questions(found)
    place.break_off_after = ()
    assert len(read_search_questions(found)) == 40
    assert place.asked[-1][1] == "bytes=1000-"


def test_another_file_is_refused_and_not_kept(root, tmp_path, place):
    """Else questions of another version would be asked under this one's name."""
    place.content = hotpot()
    found = settings(root, tmp_path, "hotpotqa_dev", "0" * 64, place.server_port)
    with pytest.raises(UserError, match="another checksum"):
        read_search_questions(found)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_row_that_is_no_question_is_one_line(root, tmp_path, place):
    """Else a changed form would be a traceback, or a question whose answer can't be found."""
    place.content = hotpot(supporting_facts={"title": ["Nowhere"], "sent_id": [0]})
    found = settings(root, tmp_path, "hotpotqa_dev", sha(place.content), place.server_port)
    with pytest.raises(UserError, match="row 1: 'context' lacks a paragraph of 'supporting_facts'"):
        read_search_questions(found)


def test_no_network_names_the_address_and_the_setting(root, tmp_path):
    """Else an offline reader would not know that a copy would do, nor where one is."""
    found = settings(root, tmp_path, "hotpotqa_dev", "0" * 64, 1)
    with pytest.raises(UserError) as error:
        read_search_questions(found)
    assert re.fullmatch(
        r"hotpotqa_dev: no file \S+: the download failed .*; set MONITORBENCH_SOURCES=DIR with "
        r"DIR/hotpotqa/distractor-validation.parquet \(upstream: http://127.0.0.1:1/datasets/\S+\)",
        str(error.value),
    )


def test_games_are_not_played_until_their_checksum_is_set(root, tmp_path, place, games):
    """Games run code: a file that nobody vouches for would be run."""
    place.content, port = games, place.server_port
    with pytest.raises(UserError, match="games run code") as error:
        read_games(settings(root, tmp_path, "alfworld_release", "", port), "pilot")
    assert str(error.value).endswith(f"environment.source.files.0.sha256={sha(games)}")
    found = settings(root, tmp_path, "alfworld_release", sha(games), port)
    read = {split: read_games(found, split) for split in ("train", "validation", "pilot")}
    assert [len(of) for of in read.values()] == [2, 2, 2]
    assert all(task.startswith("alfworld/train/") for task in read["train"])
    assert len(place.asked) == 1
    assert not (tmp_path.parent / "outside").exists()


def test_a_zip_cut_short_is_one_line(root, tmp_path, place, games):
    """Else half an archive would be a traceback of zipfile."""
    place.content = games[:-1000]
    found = settings(root, tmp_path, "alfworld_release", sha(place.content), place.server_port)
    with pytest.raises(UserError, match=r"broken archive .*fetch it again"):
        read_games(found, "pilot")
