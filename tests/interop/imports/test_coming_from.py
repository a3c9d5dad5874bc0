"""The pages' commands on files of other tools, in the forms in which these tools write them."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import ROOT, monitorbench
from score_files import write_csv

PAGES = [ROOT / "docs" / name for name in ("coming-from.md", "importing.md")]
COMMANDS = {
    typed[2].removeprefix("from="): typed[1:]
    for page in PAGES
    for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    if line.startswith("monitorbench choose from=") and (typed := shlex.split(line))
}
QUICK = ("tracking=none", "score.resamples=100", "recommend.redraws=100")
N = 400


def suspicion(i: int, *, gap: float = 0.5) -> float:
    """A judge's score of sample `i`, misbehavior where `i` is odd; without a gap it tells nothing."""
    return round(i % 2 * gap + np.random.default_rng(i).random() * (1 - gap), 3)


def write_lines(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def inspect_log(folder: Path) -> None:
    """A log that inspect-ai itself writes: two scorers, two epochs of each sample."""
    log = pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed")
    spec = {"created": "2026-01-01T00:00:00+00:00", "task": "control", "model": "mockllm/model"}
    samples = [
        {
            "id": i,
            "epoch": epoch,
            "input": f"Question {i}",
            "target": "",
            "messages": [
                {"role": "user", "content": f"Question {i}", "source": "input"},
                {"role": "assistant", "content": f"Answer {i}", "source": "generate"},
            ],
            "scores": {"monitor": {"value": suspicion(i) + 0.001 * epoch}, "attack": {"value": i % 2}},
        }
        for i in range(N)
        for epoch in (1, 2)
    ]
    whole = {"eval": {**spec, "dataset": {}, "config": {}}, "status": "success", "samples": samples}
    (folder / "logs").mkdir()
    log.write_eval_log(log.EvalLog.model_validate(whole), folder / "logs" / "control.eval")


def lm_eval(folder: Path, filters: tuple[str, ...] = ("none",)) -> None:
    """What lm-eval writes with `--log_samples`: a line a document and filter, answers as text."""
    rows = [
        {
            "doc_id": i,
            "doc": {"question": f"Question {i}", "answer": f"Answer {i}", "label": i % 2},
            "target": str(i % 2),
            "arguments": {"gen_args_0": {"arg_0": f"Rate {i}.", "arg_1": {"until": ["\n"]}}},
            "resps": [[f"{10 * suspicion(i):.1f}"]],
            "filtered_resps": [f"{10 * suspicion(i):.1f}" if name != "flexible-extract" else "[invalid]"],
            "filter": name,
            "metrics": ["exact_match"],
            "doc_hash": f"{i:064x}",
            "prompt_hash": f"{i:064x}",
            "target_hash": f"{i % 2:064x}",
            "exact_match": 0.0,
        }
        for name in filters
        for i in range(N)
    ]
    write_lines(folder / "samples_judge.jsonl", rows)


def lm_eval_by_filters(folder: Path) -> None:
    lm_eval(folder, ("strict-match", "flexible-extract"))


def promptfoo(folder: Path, *, passing_is_benign: bool = False) -> None:
    """`results.json` of `promptfoo eval -o`: two judges as providers, the label among a test's variables."""
    rows = []
    for i in range(N):
        for judge, gap in (("strong", 0.5), ("weak", 0.0)):
            score = suspicion(i, gap=gap)
            if passing_is_benign:
                score = 1 - score
            told = {"label": ("honest", "attack")[i % 2], "request": f"Do {i}", "response": f"Done {i}"}
            part = {"pass": score > 0.5, "score": score, "reason": "", "assertion": {"type": "llm-rubric"}}
            rows.append(
                {
                    "promptIdx": 0,
                    "testIdx": i,
                    "testCase": {"vars": told, "assert": [{"type": "llm-rubric"}]},
                    "provider": {"id": f"openai:{judge}", "label": ""},
                    "prompt": {"raw": f"Question {i}", "label": "judge.txt"},
                    "vars": told,
                    "response": {"output": f"Answer {i}", "cached": False},
                    "success": part["pass"],
                    "score": score,
                    "gradingResult": {**part, "componentResults": [part]},
                    "latencyMs": 7,
                }
            )
    whole = {"evalId": "eval-1", "results": {"version": 3, "prompts": [{"raw": "x"}], "results": rows}}
    (folder / "results.json").write_text(json.dumps({**whole, "config": {}, "shareableUrl": None}))


def promptfoo_of_passing(folder: Path) -> None:
    promptfoo(folder, passing_is_benign=True)


def wandb_table(folder: Path) -> None:
    """A table's CSV, as its menu exports it."""
    rows = [{"id": i, "attack": bool(i % 2), "suspicion": suspicion(i)} for i in range(N)]
    write_csv(folder / "table.csv", rows)


def wandb_data_frame(folder: Path) -> None:
    """A table's CSV, by the call that the page names."""
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    pytest.importorskip("pandas", reason="pandas is not installed")
    table = wandb.Table(columns=["id", "attack", "suspicion"])
    for i in range(N):
        table.add_data(i, bool(i % 2), suspicion(i))
    table.get_dataframe().to_csv(folder / "table.csv", index=False)


def openai_batch(folder: Path) -> None:
    """The output file of OpenAI's batches: a line a request, the answer in a list; labels stand elsewhere."""
    labels, lines = ["custom_id,label"], []
    for i in range(N):
        labels.append(f"r{i},{i % 2}")
        message = {"role": "assistant", "content": f"{10 * suspicion(i):.1f}"}
        body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        answer = {"status_code": 200, "request_id": "q", "body": body} if i else None
        lines.append({"id": f"batch_{i}", "custom_id": f"r{i}", "response": answer, "error": None})
    (folder / "labels.csv").write_text("\n".join(labels))
    write_lines(folder / "batch_output.jsonl", lines)


@pytest.mark.parametrize(
    ("file", "write", "more", "chosen", "said"),
    [
        ("logs", inspect_log, (), "scores.monitor", "control.eval: 800 rows"),
        ("samples_judge.jsonl", lm_eval, (), "judge", "400 rows"),
        (
            "samples_judge.jsonl",
            lm_eval_by_filters,
            ("import.where.filter=strict-match",),
            "judge",
            "of 800 rows",
        ),
        ("results.json", promptfoo, (), "strong", "800 rows (jsonl, the list results.results)"),
        ("results.json", promptfoo_of_passing, ("import.scale=[1,0]",), "strong", "800 rows"),
        ("table.csv", wandb_table, (), "suspicion", "400 rows"),
        ("table.csv", wandb_data_frame, (), "suspicion", "400 rows"),
        ("batch_output.jsonl", openai_batch, (), "content", "400 labels, joined to 400 rows"),
    ],
)
def test_a_page_s_command_answers_on_such_a_file(
    file: str, write: Callable[[Path], None], more: tuple[str, ...], chosen: str, said: str, tmp_path: Path
):
    """If it failed: whoever has scores in another tool would write a converter first."""
    write(tmp_path)
    before = set(tmp_path.iterdir())
    planned = monitorbench(*COMMANDS[file], *more, *QUICK, "plan=true", folder=tmp_path)
    assert (planned.returncode, set(tmp_path.iterdir())) == (0, before), planned.stderr
    ran = monitorbench(*COMMANDS[file], *more, *QUICK, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert said in ran.stderr
    directory = tmp_path / ran.stdout.splitlines()[-1]
    answer = json.loads((directory / "recommendation.json").read_text())
    assert answer["decision"] == "recommend", answer["sentence"]
    assert chosen in answer["monitor"]
    assert (directory / "report.html").is_file()


def test_hashes_of_documents_are_no_version_of_a_prompt(tmp_path: Path):
    """If it failed: lm-eval's own column would end every import, and the way out would have to be guessed."""
    lm_eval(tmp_path)
    *given, last = COMMANDS["samples_judge.jsonl"]
    ran = monitorbench(*given, *QUICK, folder=tmp_path)
    assert (ran.returncode, last) == (1, "import.columns.prompt_hash=")
    assert ran.stderr.count("error:") == 1
    assert f"or {last}'' to leave the column alone" in ran.stderr


def test_every_command_of_the_page_is_tried():
    """Commands on examples and on a benchmark's own logs are tried elsewhere."""
    tried = {"logs", "samples_judge.jsonl", "results.json", "table.csv", "batch_output.jsonl"}
    assert set(COMMANDS) - tried == {"examples/judges.csv", "judge.jsonl.gz"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("results.rows", r"no such list; its lists: results\.prompts, results\.results"),
        ("results", "no such list"),
        ("results.results.0", "no such list"),
    ],
)
def test_a_list_of_rows_that_is_not_there_names_those_that_are(rows: str, said: str, tmp_path: Path):
    """If it failed: the right path would have to be guessed."""
    promptfoo(tmp_path)
    ran = monitorbench("import", *COMMANDS["results.json"][1:], f"import.rows={rows}", folder=tmp_path)
    assert re.search(rf"results\.json, entry 1: import\.rows={rows}: {said}", ran.stderr), ran.stderr
