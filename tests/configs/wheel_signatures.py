"""What libraries that can't be imported here take: read from their wheels with `ast`, kept as JSON.

    python tests/configs/wheel_signatures.py     # writes tests/configs/wheel_signatures.json

Unsloth wants a GPU to be imported; TRL and transformers are other versions on a GPU than on a CPU. The
versions are those of requirements/lock-gpu.txt, the wheels come from pip's own index.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

KEPT = Path(__file__).with_suffix(".json")
LOCK = Path(__file__).parents[2] / "requirements" / "lock-gpu.txt"
WANTED = {
    "unsloth": {
        "unsloth/models/loader.py": ("FastLanguageModel.from_pretrained",),
        "unsloth/models/llama.py": ("FastLlamaModel.get_peft_model",),
        "unsloth/models/vision.py": ("FastBaseModel.get_peft_model",),
    },
    "trl": {"trl/trainer/sft_config.py": ("SFTConfig",), "trl/trainer/base_config.py": ("_BaseConfig",)},
    "transformers": {"transformers/training_args.py": ("TrainingArguments",)},
}
"""By package and file: a method, whose arguments are kept, or a dataclass, whose fields are."""


def pinned(package: str) -> str:
    """`package==version`, as the lock says."""
    found = re.search(rf"^{package}==\S+", LOCK.read_text(), re.MULTILINE)
    assert found
    return found[0]


def fetch(package: str, folder: Path) -> Path | None:
    """The package's wheel, from pip's cache or index; None where it can't be had."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    pip += ["--retries", "0", "--timeout", "15"]
    done = subprocess.run([*pip, "-d", str(folder), pinned(package)], capture_output=True)
    return next(folder.glob(f"{package}-*.whl"), None) if done.returncode == 0 else None


def signatures(package: str, wheel: Path) -> dict[str, list[str]]:
    """The names that each wanted method or dataclass of a wheel takes; `**` where it takes any."""
    found = {}
    with zipfile.ZipFile(wheel) as archive:
        for file, names in WANTED[package].items():
            tree = ast.parse(archive.read(file))
            classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
            for name in names:
                of, _, method = name.partition(".")
                found[name] = _arguments(classes[of], method) if method else _fields(classes[of])
    return found


def _arguments(of: ast.ClassDef, method: str) -> list[str]:
    (one,) = (node for node in of.body if isinstance(node, ast.FunctionDef) and node.name == method)
    given = [argument.arg for argument in (*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs)]
    return [*given, *(["**"] if one.args.kwarg else [])]


def _fields(of: ast.ClassDef) -> list[str]:
    return [
        node.target.id
        for node in of.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]


if __name__ == "__main__":
    kept = {}
    for package in WANTED:
        with tempfile.TemporaryDirectory() as folder:
            wheel = fetch(package, Path(folder))
            if wheel is None:
                sys.exit(f"{pinned(package)}: no wheel to be had")
            kept[pinned(package)] = signatures(package, wheel)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
