"""The page of all runs: what it tells of them, and what it refuses."""

import asyncio
import csv
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import uvicorn
from hostile import SCRIPT
from in_chromium import SCHEMES, WIDTHS, chromium, needs_chromium, shows_all, violations
from starlette.testclient import TestClient
from studies import study

from monitorbench.corpus.columns import read_columns
from monitorbench.interop.imports.stage import import_scores
from monitorbench.metrics.written import rate
from monitorbench.records import Label, Split
from monitorbench.report.view import HOST, Runs, view_app
from monitorbench.report.write import report
from monitorbench.runs.directory import DIRECTORY_LOCK, read_manifest, write_manifest
from monitorbench.runs.files import locked, write_json
from monitorbench.runs.keyed_log import VERDICTS, read_verdicts
from monitorbench.scoring.score import score_run

PORT = 8123
AT = f"http://{HOST}:{PORT}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two imported monitors, one with a page and a hostile name, and a run that has judged a third."""
    root = tmp_path_factory.mktemp("view")
    rng = np.random.default_rng(0)
    paths = (f"paths.data={root / 'data'}", f"paths.runs={root / 'runs'}")
    with (root / "scores.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["id", "label", "sharp", "dull"])
        for i in range(120):
            bad = i % 2 == 0
            label = "misbehavior" if bad else "benign"
            rows.writerow([f"row {i}", label, *np.round(rng.beta(2, 2, 2) * 0.6 + [0.4 * bad, 0], 3)])
    for name in ("sharp", "dull"):
        asked = (
            "from=" + str(root / "scores.csv"),
            f"import.columns.score={name}",
            "import.columns.sample=id",
        )
        run = import_scores(study(*asked, *paths, primary="import"))
        asked_of = study(f"run={run}", "score.resamples=100", *paths, primary="report")
        score_run(asked_of)
        if name == "sharp":
            report(asked_of, is_brief=True)
    running = run.parent / "slow-direct-scores-test-0123456789ab"
    shutil.copytree(run, running)
    lines = (run / VERDICTS).read_bytes().splitlines(keepends=True)
    (running / VERDICTS).write_bytes(b"".join(lines[:40]) + lines[40][:50])
    write_manifest(running, {**read_manifest(run), "status": "running", "results": {}})
    hostile = run.parent / f"{SCRIPT.replace('/', '')}-0123456789ab"
    hostile.mkdir()
    (root / "secret.html").write_text("secret")
    (run.parent / "away-0123456789ab").symlink_to(root)
    (root / "report.html").write_text("secret")
    with locked(running / DIRECTORY_LOCK):
        yield root


@pytest.fixture
def client(folder: Path) -> TestClient:
    return TestClient(view_app(Runs(folder / "runs", folder / "data")), base_url=AT)


def rows_of(page: str) -> dict[str, list[str]]:
    """Each run's cells as they are read, by its name."""
    found = {}
    for row in re.findall(r"<tr data-kind.*?</tr>", page, re.DOTALL):
        cells = [
            unescape(re.sub("<.*?>", "", cell)).strip()
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)
        ]
        found[cells[0]] = cells
    return found


def test_runs_stand_with_their_numbers_and_the_running_one_with_what_it_has(client: TestClient, folder: Path):
    """A sweep of a night that goes wrong in its first hour is seen in the morning."""
    page = client.get("/").text
    rows = rows_of(page)
    (running,) = [run for run in (folder / "runs" / "evaluate").iterdir() if run.name.startswith("slow")]
    judged = read_verdicts(running / VERDICTS)
    data = folder / "data" / read_manifest(running)["identity"]["data"]
    samples = read_columns(data, Split.TEST)
    is_bad = dict(zip(samples.sample_ids.to_pylist(), samples.is_misbehavior.tolist(), strict=True))
    missed = [one.label is Label.BENIGN for one in judged if is_bad[one.sample_id]]
    alarmed = [one.label is Label.MISBEHAVIOR for one in judged if not is_bad[one.sample_id]]
    cells = next(cells for name, cells in rows.items() if name.startswith("slow"))
    assert len(judged) == 40
    assert cells[4] == f"running 40 of {len(is_bad)}"
    assert cells[6:8] == [rate(float(np.mean(missed))), rate(float(np.mean(alarmed)))]
    assert re.fullmatch(r"\.\d{2,3} \[\.\d{2,3}–(\.\d{2,3}|1\.0)\]", rows["sharp-imported"][8])
    assert 'data-running="yes"' in page


def test_what_was_added_to_a_log_is_counted_at_the_next_look(client: TestClient, folder: Path):
    """Otherwise: a run that goes on looks as if it hung, or each look reads all of a long log again."""
    (running,) = [run for run in (folder / "runs" / "evaluate").iterdir() if run.name.startswith("slow")]
    whole = next(run for run in (folder / "runs" / "evaluate").iterdir() if run.name.startswith("dull"))
    lines = (whole / VERDICTS).read_bytes().splitlines(keepends=True)
    before = (running / VERDICTS).read_bytes()
    assert "running 40 of" in client.get("/").text.replace("<small>", "").replace("\n", " ")
    try:
        (running / VERDICTS).write_bytes(b"".join(lines[:55]))
        assert "55 of 120" in client.get("/").text
    finally:
        (running / VERDICTS).write_bytes(before)
    assert "40 of 120" in client.get("/").text, "a log that was begun anew"


def test_a_running_training_has_its_last_step_and_a_pilot_its_episodes(tmp_path: Path):
    """A training that learns nothing for hours looks like one that works."""
    point = {"loss": 0.3, "auroc_ci": None, "miss_rate": 0.4, "false_alarm_rate": None, "auroc": 0.7}
    for kind in ("train", "pilot"):
        folder = tmp_path / "runs" / kind / "a-0123456789ab"
        folder.mkdir(parents=True)
        write_manifest(folder, {"status": "running", "identity": {"data": "d-0123456789ab"}, "results": {}})
    write_json(
        tmp_path / "runs/train/a-0123456789ab/learning_curve.json",
        [{"step": 0} | point, {"step": 40} | point],
    )
    (tmp_path / "runs/pilot/a-0123456789ab/episodes.jsonl").write_bytes(b"{}\n{}\n")
    with (
        locked(tmp_path / "runs/train/a-0123456789ab" / DIRECTORY_LOCK),
        locked(tmp_path / "runs/pilot/a-0123456789ab" / DIRECTORY_LOCK),
    ):
        rows = {row.kind: row for row in Runs(tmp_path / "runs", tmp_path).rows()}
    assert rows["train"].progress == "step 40, on validation"
    assert [number.text for number in rows["train"].numbers] == [".40", "–", ".70"]
    assert (rows["pilot"].progress, rows["pilot"].numbers[0].text) == ("2 episodes", "–")


def test_each_page_of_a_run_is_shown_apart_from_the_others(client: TestClient):
    """A run of somebody else's, with a script in its page, must not read this team's runs."""
    (address,) = re.findall(r'href="(run/evaluate/sharp[^"]*/report.html)"', client.get("/").text)
    answer = client.get(f"/{address}")
    assert answer.status_code == 200
    assert "Which monitor to deploy" in answer.text
    assert "sandbox allow-scripts" in answer.headers["content-security-policy"]
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    assert client.get(f"/{address.replace('report', 'samples')}").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/run/evaluate/../report.html",
        "/run/evaluate/%2e%2e/report.html",
        "/run/evaluate/..%2f..%2fsecret.html/report.html",
        "/run/../secret.html/report.html",
        "/run/evaluate/away-0123456789ab/report.html",
        "/run/evaluate/sharp/manifest.json",
        "/secret.html",
        "/run/%2fetc/passwd/report.html",
        "/run/evaluate/a%00b/report.html",
    ],
)
def test_no_path_leads_out_of_the_runs(folder: Path, path: str):
    """Whoever gets the page to ask for a path would read the machine's files."""
    app = view_app(Runs(folder / "runs", folder / "data"))
    status, body = asked(app, path)
    assert status == 404
    assert b"secret" not in body


def asked(app: Callable[..., object], path: str) -> tuple[int, bytes]:
    """The answer to a path exactly as it is written, which a client would tidy up first."""
    sent: list[dict[str, object]] = []
    scope = {
        "type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", f"{HOST}:{PORT}".encode())], "http_version": "1.1", "scheme": "http",
        "root_path": "", "server": (HOST, PORT), "client": (HOST, 1),
    }  # fmt: skip

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent)  # type: ignore[return-value,misc]


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", ""])
def test_another_host_is_refused(client: TestClient, host: str):
    """A page elsewhere whose name is made to lead to 127.0.0.1 would read all runs."""
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 403
    assert "sharp" not in answer.text


def test_only_reading_is_answered(client: TestClient):
    """A read-only page that takes a POST is one bug away from a page that writes."""
    assert [client.request(method, "/").status_code for method in ("POST", "PUT", "DELETE")] == [405] * 3


@needs_chromium
def test_a_long_answer_opens_to_the_whole_of_it(tmp_path: Path):
    """What a decision rests on would stand behind an ellipsis, where a phone has no pointer to rest on it."""
    sentence = f"Deploy sharp, {'and so on, ' * 30}which is promised with 95 % confidence."
    run = tmp_path / "runs" / "recommend" / "a-0123456789ab"
    run.mkdir(parents=True)
    write_manifest(run, {"status": "done", "identity": {}, "results": {"sentence": sentence}})
    shown = TestClient(view_app(Runs(tmp_path / "runs", tmp_path)), base_url=AT).get("/").text
    with chromium() as browser:
        page = browser.new_page(viewport={"width": WIDTHS[-1], "height": 900})
        page.set_content(shown)
        answer = page.locator("td.answer")
        assert "95 % confidence" not in answer.inner_text()
        answer.locator("summary").click()
        assert " ".join(answer.inner_text().split()) == sentence


def test_names_of_runs_stay_text(client: TestClient):
    """A folder's name would run as a script on the reader's machine."""
    page = client.get("/")
    assert SCRIPT.replace("/", "") not in page.text
    assert "<script>alert" not in page.text
    assert "script-src 'sha256-" in page.headers["content-security-policy"]


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """A real server on a free port."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    app = view_app(Runs(folder / "runs", folder / "data"))
    server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://{HOST}:{port}"
    server.should_exit = True
    thread.join()


@needs_chromium
@pytest.mark.parametrize("width", WIDTHS)
def test_in_a_browser_runs_are_filtered_sorted_compared_and_opened(address: str, tmp_path: Path, width: int):
    """A table of hundreds of runs that can't be searched is a list of folders."""
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=SCHEMES[width == WIDTHS[1]]
        )
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address)
        shows_all(page)
        page.fill("[name=text]", "imported sharp")
        assert page.inner_text("[role=status]").startswith("1 of ")
        assert page.locator("tbody tr:visible").count() == 1
        page.fill("[name=text]", "")
        if width == WIDTHS[0]:
            page.get_by_role("button", name="AUROC").click()
            names = page.locator("tbody tr th").all_text_contents()
            assert names.index("dull-imported") < names.index("sharp-imported")
        page.get_by_label("compare the others with dull-imported").check()
        other = page.locator("tr", has_text="sharp-imported").locator(".metric").last
        assert re.search(r"\+\.\d\d$", other.text_content().strip())
        page.screenshot(path=tmp_path / "view.png", full_page=True)
        assert violations(page) == []
        page.get_by_role("link", name="samples").click()
        page.wait_for_selector("body[data-shown]")
        assert page.locator("#list li").count() > 50
        assert said == []
        context.close()
