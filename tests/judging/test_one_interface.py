"""Who may know which kind of engine it has before it: what opens them, and the configuration."""

import re
from pathlib import Path

import monitorbench

SOURCE = Path(monitorbench.__file__).parent
TELLS_APART = re.compile(r"(?:isinstance\([^)]*|case\s+)\b(?:OpenAi|Transformers|Vllm|Local)Engine\b")
MAY = {"config/engine.py", "engines/open.py", "engines/weights.py"}


def test_engines_are_told_apart_in_one_place():
    """Else a new engine means edits in evaluations, critics, agents and elicitation, and one is forgotten."""
    found = {
        str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.py") if TELLS_APART.search(file.read_text())
    }
    assert found == MAY


def test_only_the_opener_imports_what_runs_models():
    """Else a caller would hold a model that is not opened, checked and closed as the others are."""
    imports = re.compile(
        r"engines\.(?:transformers_engine import (?!HiddenStates)|vllm_engine|endpoint\.(?:chat|batch))\b"
    )
    unrun = re.compile(r'"""[\s\S]*?"""|^if TYPE_CHECKING:\n(?:    .*\n)+', re.MULTILINE)
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if not file.is_relative_to(SOURCE / "engines") and imports.search(unrun.sub("", file.read_text()))
    }
    assert found == {"judging/serving/vllm_server.py"}, "vLLM's own server is started from its settings"
