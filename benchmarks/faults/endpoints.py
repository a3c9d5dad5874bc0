"""A real evaluation against an endpoint that misbehaves, and the same command once it behaves again.

About half of the samples are struck. `undisturbed`: the verdicts of an endpoint that behaves. `refused`: one
line and an exit code of its own, or verdicts that are unscored with a reason, and after the endpoint has come
to itself the same command gives all that was only in the way. `silent`: a wrong label or score, a lost or
doubled sample, an outage that ends as a result, a traceback, a key in a file, the judged text at another
origin, a command that hangs or takes more than `_MOST_MIB` of memory.
"""

import base64
import json
import math
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.faults import Ending, Outcome
from benchmarks.faults.endpoint_server import Endpoint
from benchmarks.faults.modes import GROUPS
from benchmarks.faults.stages import Ran, error_line, not_one_line, run_script

KEY = "sk-" + secrets.token_hex(12)
"""Made anew in every process: a run records the code that is not committed, and so what stands here."""
_VARIABLE = "MONITORBENCH_FAULTS_KEY"
_MOST_MIB = 100
_SECONDS = 60.0
_IN_THE_WAY = frozenset(("timed_out", "http_error", "bad_response"))
"""Reasons that are no answer of the judge's: an evaluation is not finished with them."""


class Scene(NamedTuple):
    """The endpoint, the dataset and the expected verdicts, which all modes have in common."""

    endpoint: Endpoint
    data: Path
    folder: Path
    expected: dict[str, dict[str, Any]]
    """The verdicts of the endpoint that behaves, by sample."""
    mib: float
    """The memory that asking the endpoint that behaves took."""


def scene(endpoint: Endpoint, data: Path, folder: Path) -> Scene:
    """Ask the endpoint while it behaves. Raises `RuntimeError` where that fails."""
    os.environ[_VARIABLE] = KEY
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier campaign, whose endpoint had another port
    unknown = Scene(endpoint, data, folder, {}, 0)
    ran = _evaluate(unknown, "well")
    verdicts, twice = _verdicts(folder / "well")
    if ran.code or twice or not verdicts or any(one["label"] is None for one in verdicts.values()):
        raise RuntimeError(f"the evaluation fails without any fault: {ran.said[-500:]}")
    return unknown._replace(expected=verdicts, mib=ran.mib)


def misbehave(scene: Scene, mode: str) -> Outcome:
    """Evaluate against one mode, then once it is healed."""
    first = _evaluate(scene, mode)
    found, twice = _verdicts(scene.folder / mode)
    ending, why = _judged(scene, mode, first, found, twice)
    if scene.endpoint.strangers(mode):
        ending, why = "silent", "the judged text went to another origin"
    if ending != "silent":
        scene.endpoint.heal(mode)
        again = _evaluate(scene, mode)
        found, twice = _verdicts(scene.folder / mode)
        problem = _after(scene, again, found, twice) or _leaked(scene.folder / mode, first.said + again.said)
        ending, why = ("silent", f"healed: {problem}") if problem else (ending, why)
    if ending != "silent":
        shutil.rmtree(scene.folder / mode, ignore_errors=True)
    group = next(name for name, members in GROUPS.items() if mode in members)
    return Outcome(f"endpoint {group}", mode, ending, why)


def _judged(
    scene: Scene, mode: str, ran: Ran, found: dict[str, dict[str, Any]], twice: bool
) -> tuple[Ending, str]:
    if problem := _ended_badly(ran) or _leaked(scene.folder / mode, ran.said):
        return "silent", problem
    if twice:
        return "silent", "a sample has two verdicts"
    if ran.mib > scene.mib + _MOST_MIB:
        return "silent", f"{ran.mib - scene.mib:.0f} MiB of memory"
    worst, why = _compared(scene, found)
    if worst == "silent":
        return worst, why
    if ran.code == 0:
        if lost := scene.expected.keys() - found.keys():
            return "silent", f"{len(lost)} samples lost, exit code 0"
        if any(one["unscored"] in _IN_THE_WAY for one in found.values()):
            return "silent", "an outage ends as a result, exit code 0"
        return worst, why
    return "refused", error_line(ran.said)


def _after(scene: Scene, ran: Ran, found: dict[str, dict[str, Any]], twice: bool) -> str:
    """Say what is wrong once the endpoint behaves again; empty where nothing is."""
    if ran.code:
        return f"the same command ends with {ran.code}: {error_line(ran.said)}"
    worst, why = _compared(scene, found)
    if worst == "silent":
        return why
    if lost := scene.expected.keys() - found.keys():
        return f"{len(lost)} samples lost"
    if any(one["unscored"] in _IN_THE_WAY for one in found.values()):
        return "what was in the way is not asked again"
    return "a sample has two verdicts" if twice else ""


def _compared(scene: Scene, found: dict[str, dict[str, Any]]) -> tuple[Ending, str]:
    """The verdicts there are, beside the expected ones."""
    ending: Ending = "undisturbed"
    why = ""
    for sample, verdict in found.items():
        expected = scene.expected[sample]
        if verdict["label"] is None:
            ending, why = "refused", f"{verdict['unscored']}: {verdict['detail'][:90]}"
        elif verdict["label"] != expected["label"]:
            return "silent", f"a wrong label from a broken reply: {verdict['answer'][:40]!r}"
        if not (0 <= verdict["cost"] < 1):
            return "silent", f"a reply that costs {verdict['cost']}"
        if verdict["score"] is None:
            ending, why = "refused", why or f"no score: {verdict['detail'][:90]}"
        elif not math.isclose(verdict["score"], expected["score"], abs_tol=1e-9):
            return "silent", f"a wrong score, {verdict['score']:.3g} for {expected['score']:.3g}"
    return ending, why


def _ended_badly(ran: Ran) -> str:
    if ran.code == 2:
        return f"the settings are refused: {error_line(ran.said)}"
    if ran.code < 0:
        return f"ended by signal {-ran.code}, or hung"
    if ran.code or "Traceback (most recent call last)" in ran.said:
        return not_one_line(ran.said)
    return ""


def _leaked(folder: Path, said: str) -> str:
    """Say where the key is to be read; empty where it isn't."""
    spelt = [KEY.encode(), KEY[::-1].encode(), base64.b64encode(KEY.encode())]
    for path in folder.rglob("*"):
        if path.is_file() and any(one in path.read_bytes() for one in spelt):
            return f"the key is in {path.name}"
    return "the key is on the terminal" if any(one in said.encode() for one in spelt) else ""


def _verdicts(folder: Path) -> tuple[dict[str, dict[str, Any]], bool]:
    """The verdicts in a log by sample, and whether a sample has two."""
    logs = list(folder.glob("evaluate/*/verdicts.jsonl"))
    lines = [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()]
    found = {line["sample_id"]: line for line in lines}
    return found, len(found) < len(lines)


def _evaluate(scene: Scene, mode: str) -> Ran:
    arguments: Sequence[str] = [
        f"paths.data={scene.data}",
        f"paths.runs={scene.folder / mode}",
        "tracking=none",
        "dataset.generated_pairs=8",
        "dataset.test.pairs_per_cell=1",
        "engine=openai_api",
        f"engine.base_url='{scene.endpoint.base(mode)}'",
        "engine.model=m",
        f"engine.api_key_env={_VARIABLE}",
        "engine.concurrency=4",
        "engine.timeout_seconds=1",
        "engine.max_retries=1",
        "engine.prices={prompt: 1.0, cached_prompt: 0.5, completion: 2.0}",
    ]
    scene.folder.mkdir(parents=True, exist_ok=True)
    return run_script("eval/evaluate.py", arguments, scene.folder / "said", _SECONDS)
