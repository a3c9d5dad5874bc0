"""A benchmark's own monitor prompts: where a dataset brings them, they stand in for ours.

`<dataset>/prompts/<kind>.txt` is the user's turn, with `{{ request }}` and `{{ response }}`, or the same
names in single braces (also `{question}`, `{answer}` and `{trajectory}`), where the judged text goes.
"""

import re
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.seen import Policy
from monitorbench.config.study import Prompt
from monitorbench.runs.directory import checked_file, read_manifest
from monitorbench.untrusted import document

_NAMES = {
    **dict.fromkeys(("request", "question", "prompt", "instruction"), "request"),
    **dict.fromkeys(("response", "answer", "trajectory", "completion"), "response"),
}
_PLACEHOLDER = re.compile(r"\{{1,2}\s*(" + "|".join(_NAMES) + r")\s*\}{1,2}")


def published_prompt(dataset: Path, ours: Prompt) -> Prompt:
    """The dataset's own prompt of the same kind, with our label words, token limit and prefill; else `ours`.

    Raises `UserError` where it is not as it was written, does not say where request and response go, and
    for a few-shot prompt.
    """
    name = f"prompts/{ours.kind.value}.txt"
    if name not in read_manifest(dataset)["files"]:
        return ours
    file = checked_file(dataset, name)
    if ours.shots:
        raise UserError(
            f"{file}: the dataset's own prompt shows no examples; expected a zero-shot prompt, not "
            f"prompt={ours.name}"
        )
    try:
        text = document(file).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8; save it as UTF-8") from error
    placeholders = {_NAMES[match[1]] for match in _PLACEHOLDER.finditer(text)}
    if placeholders != {"request", "response"}:
        raise UserError(
            f"{file}: it does not say where the judged text goes; expected {{{{ request }}}} and "
            "{{ response }} in it"
        )
    # Everything else in it is text, braces included.
    parts = _PLACEHOLDER.split(text)
    user = "".join(
        f"{{{{ {_NAMES[piece]} }}}}" if index % 2 else _verbatim(piece) for index, piece in enumerate(parts)
    )
    return ours.model_copy(
        update={"name": f"{ours.name}-published", "system": "", "user": user, "policy": Policy()}
    )


def _verbatim(text: str) -> str:
    """Jinja for just this text, an `{% endraw %}` in it included."""
    inside = text.replace("{%", "{% endraw %}{{ '{%' }}{% raw %}")
    return f"{{% raw %}}{inside}{{% endraw %}}"
