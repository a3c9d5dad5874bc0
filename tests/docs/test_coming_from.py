"""The page for those who come from other tools: its commands answer on files in these tools' own forms."""

import csv
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import ROOT, monitorbench

TEXT = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
COMMANDS = {
    command.partition("from=")[2].partition(" ")[0]: shlex.split(command.replace("\\\n", " "))[1:]
    for command in re.findall(r"^```\n(monitorbench.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
}
QUICK = ("tracking=none", "score.resamples=100", "recommend.redraws=100")


def scored(n: int = 600) -> Iterator[tuple[int, bool, float]]:
    """Number, truth and suspicion from 0 to 1 of samples that a good judge tells apart."""
    rng = np.random.default_rng(0)
    for i in range(n):
        yield i, bool(i % 2), round(0.5 * (i % 2) + 0.5 * rng.random(), 3)


def inspect_log(folder: Path) -> None:
    """A log of Inspect in JSON, with two scorers."""
    samples = [
        {
            "id": i,
            "epoch": 1,
            "input": f"Question {i}",
            "target": "",
            "messages": [
                {"role": "user", "content": f"Question {i}"},
                {"role": "assistant", "content": f"Answer {i}", "source": "generate"},
            ],
            "scores": {"monitor": {"value": score}, "attack": {"value": int(truth)}},
        }
        for i, truth, score in scored()
    ]
    told = {
        "task": "control",
        "model": "mockllm/model",
        "eval_id": "e",
        "run_id": "r",
        "created": "2026-01-01",
    }
    log = {"version": 2, "status": "success", "eval": told, "samples": samples}
    (folder / "logs").mkdir()
    (folder / "logs" / "run.json").write_text(json.dumps(log))


def lm_eval(folder: Path) -> None:
    """What lm-eval writes with `--log_samples`: a line a document and filter."""
    rows: list[dict[str, Any]] = [
        {
            "doc_id": i,
            "doc": {"question": f"Question {i}", "answer": f"Answer {i}", "label": int(truth)},
            "target": str(int(truth)),
            "arguments": {"gen_args_0": {"arg_0": f"Rate {i}", "arg_1": {"until": ["\n"]}}},
            "resps": [[f"{10 * score:.1f}"]],
            "filtered_resps": [f"{10 * score:.1f}"],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": 0.0,
            "doc_hash": f"{i:064x}",
        }
        for i, truth, score in scored()
    ]
    (folder / "samples_judge.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def promptfoo(folder: Path) -> None:
    """`results.json` of promptfoo: rows in a list in a list, an assertion's score in a list again."""
    rows = [
        {
            "testIdx": i,
            "promptIdx": 0,
            "provider": {"id": "openai:judge", "label": ""},
            "vars": {"label": ("honest", "attack")[truth]},
            "response": {"output": "text"},
            "success": True,
            "gradingResult": {"pass": True, "componentResults": [{"pass": True, "score": score}]},
        }
        for i, truth, score in scored()
    ]
    (folder / "results.json").write_text(
        json.dumps({"results": {"version": 3, "results": rows}, "config": {}})
    )


def wandb_table(folder: Path) -> None:
    """A logged table, exported as CSV."""
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "attack", "suspicion"])
        writer.writerows(scored())


@pytest.mark.parametrize(
    ("file", "write"),
    [
        ("logs", inspect_log),
        ("samples_judge.jsonl", lm_eval),
        ("results.json", promptfoo),
        ("table.csv", wandb_table),
    ],
)
def test_the_page_s_command_answers_on_such_a_file(file: str, write: Callable[[Path], None], tmp_path: Path):
    """If it failed: whoever has scores in another tool would write a converter first."""
    write(tmp_path)
    ran = monitorbench(*COMMANDS[file], *QUICK, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"Deploy [\w.]+ for alerts", " ".join(ran.stdout.split())), ran.stdout
    assert (tmp_path / ran.stdout.splitlines()[-1] / "report.html").is_file()


def test_every_command_of_the_page_is_tried():
    assert set(COMMANDS) == {"logs", "samples_judge.jsonl", "results.json", "table.csv"}
