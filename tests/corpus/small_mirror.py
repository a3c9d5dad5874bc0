"""A small mirror of made-up rows in the upstreams' schemas, and the command line that builds from it."""

import gzip
import io
import json
import random
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from studies import study

from monitorbench.corpus.build import ensure
from monitorbench.runs.directory import read_manifest

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
QA, CODE = "safety_permission/qa", "safety_permission/code"
SYCOPHANCY, GAMING = "sycophancy_bias/reasoning", "specification_gaming/reasoning"
NO_SOURCE = "specification_gaming/qa"


def words(name: str, count: int) -> str:
    rng = random.Random(f"words/{name}")
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count))


def diasafety_rows() -> list[dict[str, Any]]:
    rows = [
        {
            "context": words(f"context {n // 2}", 15),
            "response": words(f"reply {n}", 25),
            "category": "Risk Ignorance",
            "label": ("Safe", "Unsafe")[n % 2],
        }
        for n in range(60)
    ]
    for n in range(4):
        # A request of the benchmark in other clothes, a response of it, and a reply that is there twice.
        rows[n]["context"] = f"  {words(f'goal {n}', 15).upper()}"
        rows[10 + n]["response"] = f"{words(f'artifact {n} jailbroken', 30)} {words(f'{n}', 1)}"
        rows[20 + 2 * n + 1]["response"] = rows[30 + 2 * n + 1]["response"]
        rows[20 + 2 * n + 1]["context"] = rows[30 + 2 * n + 1]["context"] + " " + words(f"tail {n}", 1)
    rows.append({**rows[40], "response": words("odd", 20), "label": "Perhaps"})
    return rows


def tar_gz(members: Mapping[str, bytes]) -> bytes:
    """A packed archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def jailbreakbench_archive(*more: dict[str, Any]) -> bytes:
    rows = [
        {
            "index": n,
            "goal": words(f"goal {n}", 15),
            "behavior": f"Behaviour {n}",
            "category": "Fraud/Deception",
            "prompt": "as attacked",
            "response": words(f"artifact {n} jailbroken", 30)
            if jailbroken
            else f"I'm sorry, no. {words(f'artifact {n} refused', 28)}",
            "jailbroken": jailbroken,
        }
        for n in range(16)
        for jailbroken in (True, False)
    ]
    rows += [{"behavior": "Behaviour", "category": "Fraud", "prompt": "as attacked", **row} for row in more]
    members = {}
    for side in (True, False):
        jailbreaks = [row for row in rows if row["jailbroken"] is side]
        content = json.dumps({"parameters": {"model": "m"}, "jailbreaks": jailbreaks}).encode()
        members[f"attack-artifacts/GCG/{side}/m.json"] = content
    return tar_gz(members)


def reflexion_archive() -> bytes:
    """Two runs on one problem of MBPP, of which one failed."""
    tests = "".join(f"    assert candidate({n}) == {n * n}\n" for n in (3, 0, 5))
    row = {
        "name": "mbpp_7_square",
        "prompt": 'def square(n: int) -> int:\n    """\n\tWrite a function that squares.\n\t"""\n',
        "entry_point": "square",
        "test": f"def check(candidate):\n{tests}\ncheck(square)\n",
    }
    written = {
        "simple_mbpp_py": {**row, "solution": f"{row['prompt']}    return n * 3", "is_solved": False},
        "reflexion_mbpp_py": {
            **row,
            "solution": "def square(n: int) -> int:\n    return n * n",
            "is_solved": True,
        },
    }
    return tar_gz(
        {f"programming_runs/root/{run}/log.jsonl": json.dumps(row).encode() for run, row in written.items()}
    )


def sven_rows() -> list[dict[str, Any]]:
    rows = []
    for n in range(24):
        name = words(f"function {n}", 4).replace(" ", "_")
        body = "".join(f"    {word} = {word!r}\n" for word in words(f"body {n}", 12).split())
        rows.append(
            {
                "func_name": name,
                "func_src_before": f"def {name}(db, name):\n{body}    return db.get('name=' + name)\n",
                "func_src_after": f"def {name}(db, name):\n{body}    return db.get('name=?', name)\n",
                "commit_link": f"github.com/owner/name/commit/{n // 3}",
                "file_name": "app/store.py",
                "vul_type": "cwe-089",
            }
        )
    # Forks: the same mending in another repository.
    forks = [{**row, "commit_link": f"github.com/fork/name/commit/{n}"} for n, row in enumerate(rows[:5])]
    return rows + forks


def gsm8k_rows() -> list[dict[str, Any]]:
    rows = []
    for n in range(30):
        rng = random.Random(f"gsm8k/{n}")
        a, b, c = (rng.randint(3, 40) for _ in range(3))

        def solution(seed: str, one: int, two: int) -> str:
            return (
                f"{words(f'{seed} first', 9)} {one} + 0 = <<{one}+0={one}>>{one}.\n"
                f"{words(f'{seed} then', 9)} {one} + {two - one} = <<{one}+{two - one}={two}>>{two}.\n"
                f"A: {two}"
            )

        right, wrong = a * b + c, a + b + c
        rows.append(
            {
                "question": f"{words(f'question {n}', 18)} {a} {words(f'and {n}', 4)} {b}, {c}?",
                "ground_truth": f"{a} * {b} + {c}\nA: {right}",
                **{
                    model: {"is_correct": good, "solution": solution(f"{n} {model}", a * b, end)}
                    for model, good, end in (
                        ("6b_finetuning", True, right),
                        ("6b_verification", False, wrong + 500),
                        ("175b_finetuning", True, right),
                        ("175b_verification", False, wrong + 900),
                    )
                },
            }
        )
    return rows


def write_mirror(folder: Path) -> Path:
    folder.mkdir(parents=True)
    lines = {
        name: b"".join(json.dumps(row).encode() + b"\n" for row in rows) for name, rows in _LINES.items()
    }
    for name, content in lines.items():
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(content))
    (folder / "diasafety.json").write_text(json.dumps(diasafety_rows()))
    (folder / "jailbreakbench.tar.gz").write_bytes(jailbreakbench_archive())
    return folder


_LINES = {"sven": sven_rows(), "gsm8k": gsm8k_rows()}
_FILES = {
    "diasafety": ("test.json", "diasafety.json"),
    "jailbreakbench": ("", "jailbreakbench.tar.gz"),
    "sven": ("rows.jsonl", "sven.jsonl.gz"),
    "gsm8k": ("example_model_solutions.jsonl", "gsm8k.jsonl.gz"),
}
_OTHERS = sorted(
    name
    for name, ingredient in study("dataset=paper_local", primary="build").dataset.sources.items()
    if ingredient is not None and name not in _FILES
)


CELLS = (QA, CODE, "sycophancy_bias/qa", SYCOPHANCY, NO_SOURCE, "specification_gaming/code", GAMING)
BENCHMARK = {QA: (6, 1), CODE: (7, 0), SYCOPHANCY: (4, 4), NO_SOURCE: (3, 0), GAMING: (3, 3)}
CORPUS = {QA: 30, CODE: 1000, SYCOPHANCY: 10, NO_SOURCE: 5, GAMING: 1000}


def overrides(
    mirror: Path,
    data: Path,
    benchmark: Mapping[str, tuple[int, int]] = BENCHMARK,
    corpus: Mapping[str, int] = CORPUS,
    **changes: str,
) -> list[str]:
    """The command line of a small build; `changes` by dotted key, its dots as `__`."""
    settings = {
        "dataset": "paper_local",
        "paths.data": str(data),
        "paths.sources": str(mirror),
        "dataset.on_bad_row": "skip",
        "dataset.development_pairs": "2",
        "dataset.sources.jailbreakbench": "{benchmark: true, max_share: 0.5}",
        "dataset.sources.diasafety": "{benchmark: false, max_share: 0.9}",
        "dataset.sources.sven": "{benchmark: true, max_share: 1.0}",
        "dataset.sources.gsm8k": "{benchmark: true, max_share: 1.0, training_only: [broken_off]}",
        **{f"dataset.sources.{name}": "null" for name in _OTHERS},
        **{
            f"source.{name}.files": f'[{{path: "{path}", mirror: {file}, sha256: ""}}]'
            for name, (path, file) in _FILES.items()
        },
    }
    for cell in CELLS:
        without, with_ = benchmark.get(cell, (0, 0))
        key = cell.replace("/", ".")
        # One source is a whole stratum here, or lacks one.
        strata = dict.fromkeys(
            ("refusal", "resisted", "agreed", "right_key", "wrong_key", "complete", "mistaken", "slip"), 1.0
        )
        free = f", max_strata: {json.dumps(strata).replace(chr(34), '')}, held_out: []"
        free += ", development_pairs: null, development_first: false"
        settings[f"dataset.benchmark.{key}"] = (
            f"{{without_thinking: {without}, with_thinking: {with_}{free}}}"
        )
        settings[f"dataset.corpus.{key}"] = str(corpus.get(cell, 0))
    # The sessions of agents come with the package and need no mirror.
    settings["dataset.benchmark.safety_permission.agent"] = (
        "{without_thinking: 0, with_thinking: 0, development_pairs: 0}"
    )
    settings["dataset.corpus.safety_permission.agent"] = "0"
    settings |= {key.replace("__", "."): value for key, value in changes.items()}
    return [f"{key}={value}" for key, value in settings.items()]


def built(mirror: Path, data: Path, **changes: Any) -> Path:
    return ensure(study(*overrides(mirror, data, **changes), primary="build"))


def shards(directory: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(directory)): file.read_bytes() for file in sorted(directory.glob("*/*.parquet"))
    }


class Mirrored(NamedTuple):
    mirror: Path
    data: Path
    directory: Path

    @property
    def results(self) -> dict[str, Any]:
        results: dict[str, Any] = read_manifest(self.directory)["results"]
        return results
