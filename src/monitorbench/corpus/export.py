"""A built dataset in other people's formats: chats for TRL, a hub repository with its card.

The Parquet shards themselves are what `datasets.load_dataset("parquet", …)` reads; nothing is converted
for that. A push shows what it would do unless `export.dry_run` is false.
"""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.datasets import Dataset
from monitorbench.config.evaluation import Export
from monitorbench.config.study import Prompt, PromptKind
from monitorbench.corpus.store import n_rows, read_split, reading, shards_of
from monitorbench.prompts.wording import PromptWording, published_prompt
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import read_checked, read_finished, record_files
from monitorbench.runs.files import content_hash, write_atomically
from monitorbench.sources.fetch import hub_errors
from monitorbench.untrusted_parquet import parquet_table

_log = logging.getLogger(__name__)


def write_chats(wanted: Prompt, dataset: Dataset, directory: Path) -> Path:
    """`chat-<prompt>-<hash of the views>/<split>.jsonl`: TRL's conversational prompt-completion format.

    `prompt` is the monitor's system and user turn, `completion` the answer up to the label word (with the
    evidence prompt: how its JSON begins); `id` names the sample, and so does the `own_id`
    of one from a file with ids. Split views hold; a split
    without samples has no file.
    Trainers other than `train/sft.py` render it by themselves, so their token ids may differ from ours.
    """
    if wanted.shots:
        raise ConfigError(f"prompt={wanted.name}: training uses zero-shot prompts; expected one")
    if wanted.kind not in (PromptKind.DIRECT, PromptKind.EVIDENCE):
        raise ConfigError(f"prompt={wanted.name}: a label does not begin its answer; expected a direct one")
    prompt = published_prompt(directory, wanted)
    wording = PromptWording(prompt)
    filled = [split for split in _splits_of(directory) if n_rows(directory, split)]
    views = {split: dataset.view(split.value) for split in filled}
    chosen = content_hash({split: view.model_dump(mode="json") for split, view in views.items()})
    folder = directory / f"chat-{prompt.title}-{chosen}"
    for split, view in views.items():
        chats = _chats(read_split(directory, split, view), prompt, wording)
        lines = (json.dumps(chat, ensure_ascii=False) for chat in chats)
        write_atomically(folder / f"{split.value}.jsonl", "".join(f"{line}\n" for line in lines))
    _log.info("chats for TRL: %s", folder)
    return folder


def push(export: Export, dataset: Dataset, directory: Path) -> Path:
    """Upload the splits with a generated card to `export.repo`, or show what would be uploaded.

    The token is read by the hub's own client from the environment; it is never part of a config.
    """
    repo = export.repo
    card_file = directory / "card.md"
    if not card_file.is_file():
        raise UserError(
            f"{card_file}: no data card yet; write it with `monitorbench audit dataset={dataset.name}`"
        )
    if [split.value for split in _splits_of(directory)] != list(
        read_checked(directory, "audit.json")["splits"]
    ):
        raise UserError(f"{card_file}: older than the splits; write it anew with `monitorbench audit`")
    write_atomically(directory / "README.md", front_matter(directory) + card_file.read_text(encoding="utf-8"))
    record_files(directory, "README.md")
    files = [
        "README.md",
        "manifest.json",
        *(f"{split.value}/*.parquet" for split in _splits_of(directory)),
    ]
    if export.dry_run:
        _log.info("dry run: would upload to %s: %s", repo or "(no export.repo given)", ", ".join(files))
        _log.info("%s", (directory / "README.md").read_text(encoding="utf-8"))
        return directory
    if not repo:
        raise UserError("export.repo=null: no repository given; expected export.repo=OWNER/NAME")
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise UserError(
            "export.format=hub: huggingface_hub is not installed; install the cpu or gpu extra"
        ) from error
    try:
        api = HfApi()
        api.create_repo(repo, repo_type="dataset", private=export.private, exist_ok=True)
        api.upload_folder(repo_id=repo, repo_type="dataset", folder_path=directory, allow_patterns=files)
    except hub_errors() as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"export.repo={repo}: the hub refused ({type(error).__name__}: {reason})") from error
    return directory


def front_matter(directory: Path) -> str:
    """The YAML head of a hub card: one configuration whose splits are the Parquet folders."""
    results = read_finished(directory)["results"]
    licences = sorted({licence for split in _splits_of(directory) for licence in _licences(directory, split)})
    lines = ["---", f"pretty_name: {directory.name}", "tags: [llm-monitoring, ai-safety]"]
    lines += ["license: other", "license_name: mixed", f"# {', '.join(licences)}"]
    lines += ["configs:", "- config_name: default", "  data_files:"]
    for split in results["splits"]:
        lines += [f"  - split: {split}", f"    path: {split}/*.parquet"]
    return "\n".join([*lines, "---", ""])


def _chats(samples: list[Sample], prompt: Prompt, wording: PromptWording) -> Iterator[dict[str, Any]]:
    for sample in samples:
        yield {
            "id": sample.id,
            **({"own_id": sample.own_id} if sample.own_id else {}),
            "prompt": [
                {"role": "system", "content": wording.system},
                {"role": "user", "content": wording.user(sample)},
            ],
            "completion": [{"role": "assistant", "content": prompt.prefill + wording.word(sample.label)}],
        }


def _splits_of(directory: Path) -> list[Split]:
    built = read_finished(directory)["results"]["splits"]
    return [split for split in Split if split.value in built]


def _licences(directory: Path, split: Split) -> set[str]:
    licences: set[str] = set()
    for shard in shards_of(directory, split):
        with reading(shard):
            licences |= set(parquet_table(shard, ["licence"]).column(0).unique().to_pylist())
    return licences
