"""A model on the hub is named, loaded and found again by its commit, never by a branch."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Done
from evaluation import evaluate
from gguf_files import tiny_qwen2, write_gguf
from hub_server import COMMITS, Hub, serving
from small_models import SMOLLM2

from monitorbench.engines.weights import weights_identity

REPO = "team/tiny"
Run = Callable[..., Done]
pytestmark = pytest.mark.slow  # a process with torch for each judging


@pytest.fixture
def judge(tmp_path: Path) -> Run:
    """Run `eval/evaluate.py` on the repository, with a hub cache of its own."""

    def run(url: str, *overrides: str) -> Done:
        environment = {
            "HF_HOME": str(tmp_path / "hf"),
            "HF_ENDPOINT": url,
            "HF_HUB_OFFLINE": "0" if url.startswith("http") else "1",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        environment |= {name: "" for name in os.environ if name.lower() in ("http_proxy", "https_proxy")}
        ours = (f"monitor.hub_id={REPO}", "monitor.revision=main", "monitor.package=null")
        return evaluate(tmp_path, *ours, *overrides, environment=environment)

    return run


def cached(home: Path, commit: str, files: Path) -> Path:
    """Put files into a hub cache as its client lays them out; returns the repository's folder."""
    folder = home / "hub" / f"models--{REPO.replace('/', '--')}"
    snapshot = folder / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir(exist_ok=True)
    for file in files.iterdir():
        blob = folder / "blobs" / f"{commit[:8]}-{file.name}"
        shutil.copy(file, blob)
        (snapshot / file.name).symlink_to(os.path.relpath(blob, snapshot))
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text(commit)
    return folder


def weights_of(done: Done) -> str:
    """What the manifest of a run says that was judged with."""
    assert done.returncode == 0, done.stderr[-3000:]
    manifest = json.loads((Path(done.stdout.split()[-1]) / "manifest.json").read_text())
    assert manifest["results"]["judge"]["weights"] == manifest["identity"]["judge"]["weights"]
    found: str = manifest["identity"]["judge"]["weights"]
    return found


def test_a_branch_that_moved_is_another_model(judge: Run, tiny: Path, other_tiny: Path):
    """If it failed: the new model would get the old one's verdicts, and nobody could say which was judged."""
    hub = Hub(REPO, dict(zip(COMMITS, (tiny, other_tiny), strict=True)), COMMITS[0])
    with serving(hub):
        first = judge(hub.url)
        assert weights_of(first) == f"hub:{REPO}@{COMMITS[0]}"
        again = judge(hub.url)
        assert (again.stdout, "reusing" in again.stderr) == (first.stdout, True)
        hub.main = COMMITS[1]
        moved = judge(hub.url)
        assert weights_of(moved) == f"hub:{REPO}@{COMMITS[1]}"
        assert moved.stdout != first.stdout
        asked = len(hub.asked)
        pinned = judge(hub.url, f"monitor.revision={COMMITS[0]}")
        assert pinned.stdout == first.stdout
        assert hub.asked[asked:] == []
    # The server is gone: what its cache noted last holds, and says which commit it is.
    assert judge(hub.url).stdout == moved.stdout


def test_a_gguf_file_of_a_repository_is_named_by_its_content(judge: Run, tmp_path: Path):
    """If it failed: its verdicts would be lost when it is downloaded by hand, or its repository moves on."""
    (tmp_path / "upstream").mkdir()
    file = write_gguf(tmp_path / "upstream" / "tiny.gguf", tiny_qwen2())
    named = f"gguf:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    with serving(Hub(REPO, {COMMITS[0]: file.parent}, COMMITS[0])) as hub:
        assert weights_of(judge(hub.url, "monitor.gguf_file=tiny.gguf")) == named
    assert weights_identity(SMOLLM2.model_copy(update={"gguf": file})) == named


def test_a_pickle_is_not_downloaded(judge: Run, tiny: Path, tmp_path: Path):
    """If it failed: gigabytes that are never read would be fetched."""
    folder = Path(shutil.copytree(tiny, tmp_path / "upstream"))
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    with serving(Hub(REPO, {COMMITS[0]: folder}, COMMITS[0])) as hub:
        weights_of(judge(hub.url))
        assert not [path for path in hub.asked if path.endswith(".bin")]
        (folder / "model.safetensors").rename(folder / "later")
        hub.commits, hub.main = {COMMITS[1]: folder}, COMMITS[1]
        done = judge(hub.url)
    assert done.returncode == 1
    assert f"monitor.hub_id={REPO}: no weights; expected *.safetensors" in done.stderr


def test_offline_the_cache_says_which_commit_a_branch_is(judge: Run, tiny: Path, other_tiny: Path, tmp_path):
    """If it failed: a cluster without network would name models by branches."""
    cached(tmp_path / "hf", COMMITS[0], tiny)
    assert weights_of(judge("offline")) == f"hub:{REPO}@{COMMITS[0]}"
    cached(tmp_path / "hf", COMMITS[1], other_tiny)
    assert weights_of(judge("offline")) == f"hub:{REPO}@{COMMITS[1]}"
    assert weights_of(judge("offline", f"monitor.revision={COMMITS[0]}")) == f"hub:{REPO}@{COMMITS[0]}"


@pytest.mark.parametrize("url", ["offline", "http://127.0.0.1:9"])
def test_without_network_and_cache_one_line_says_so(judge: Run, url: str):
    """If it failed: a traceback of an HTTP library would be read, or a run be named by a branch."""
    done = judge(url)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"{REPO}@main: can't be had from the hub, nor from its cache" in done.stderr
    assert "set monitor.path to a local folder of it" in done.stderr


def test_an_unknown_branch_is_refused_in_one_line(judge: Run, tiny: Path):
    """If it failed: a typo in a revision would end in a traceback."""
    with serving(Hub(REPO, {COMMITS[0]: tiny}, COMMITS[0])) as hub:
        done = judge(hub.url, "monitor.revision=mian")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"{REPO}@mian: can't be had from the hub" in done.stderr
