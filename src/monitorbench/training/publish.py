"""Publishing of a training run: a merged model folder, or a repository on the hub, and the card of either.

A push shows what it would do unless `push.dry_run` is false. The card is Markdown with the hub's YAML head,
made of the run's own files and of finished evaluations of the same adapter; it states what is not known as
not known.
"""

import logging
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.study import Monitor, Study
from monitorbench.engines.stored.adapter import adapter_sha256, refuse_unfit_adapter
from monitorbench.engines.weights import at_identity, merge, weights_folder, weights_identity
from monitorbench.runs.directory import read_checked, read_finished, read_manifest, record_files
from monitorbench.runs.files import write_atomically
from monitorbench.sources.fetch import hub_errors

_SHOWN = (
    "objective",
    "batching",
    "balance",
    "learning_rate",
    "lora_rank",
    "lora_alpha",
    "lora_dropout",
    "max_steps",
    "epochs",
    "batch_size",
    "max_tokens",
    "dtype",
)


def model_card(run: Path, *, merged: bool, evaluations: Sequence[Mapping[str, Any]]) -> str:
    """The whole card. `evaluations` have `prompt`, `data` and `cells`, as in `metrics.json`."""
    manifest, config = read_finished(run), read_checked(run, "config.json")
    results, monitor = manifest["results"], config["monitor"]
    curve = read_checked(run, "learning_curve.json")
    kept_point = next((point for point in curve if point["step"] == results["kept_step"]), curve[-1])
    words = config["prompt"]["label_words"]
    parts = [
        _head(monitor, merged, manifest),
        f"# {run.name}\n",
        f"A monitor: asked with the prompt `{config['prompt']['name']}` of monitorbench, it answers "
        f"`{words['misbehavior']}` to a request and response that show misbehavior and `{words['benign']}` "
        "to others. "
        + (
            "The full model, with the adapter merged in.\n"
            if merged
            else f"A LoRA adapter for `{monitor['hub_id']}` (weights `{manifest['identity']['weights']}`).\n"
        ),
        "**Trained on some cells, a monitor may be worse than its base on others**: measure it on yours.\n",
        "## Training\n",
        _table(("", ""), _training(manifest, config)),
        "## On the validation split\n",
        _table(
            ("step", "AUROC", "Miss Rate", "False Alarm Rate", "samples"),
            [
                (p["step"], _number(p["auroc"], p["auroc_ci"]), *_rates(p), p["n"])
                for p in ([curve[0], kept_point] if kept_point is not curve[0] else [kept_point])
            ],
        ),
        "Step 0 is the base. The validation split may have chosen the step: it is no test.\n",
        "## On a test split\n",
        *(_evaluation(evaluation) for evaluation in evaluations),
    ]
    if not evaluations:
        parts.append("Not measured yet.\n")
    parts += [
        "## Licence\n",
        f"The base's own terms hold (`{monitor['hub_id']}`); those of the training data are in the data "
        "set's card. Neither was checked here.\n",
    ]
    return "\n".join(parts)


def _head(monitor: Mapping[str, Any], merged: bool, manifest: Mapping[str, Any]) -> str:
    lines = [
        "---",
        f"base_model: {monitor['hub_id']}",
        f"base_model_relation: {'finetune' if merged else 'adapter'}",
        f"library_name: {'transformers' if merged else 'peft'}",
        "pipeline_tag: text-classification",
        "license: other",
        "license_name: as-the-base-model",
        "tags: [llm-monitoring, ai-safety, lora]",
        f"# trained on: {', '.join(manifest['results']['trained_on'])}",
        "---",
        "",
    ]
    return "\n".join(lines)


def _training(manifest: Mapping[str, Any], config: Mapping[str, Any]) -> Iterable[Sequence[object]]:
    results, training = manifest["results"], manifest["identity"]["training"]
    yield "trained on", ", ".join(results["trained_on"])
    yield "data", f"`{manifest['identity']['data']}`"
    yield "samples", f"{results['n_samples']} (dropped as too long: {results['n_dropped_too_long']})"
    if "n_pairs" in results:
        yield "pairs among them", results["n_pairs"]
    if "n_instructions" in results:
        yield "instructions mixed in", f"{results['n_instructions']} of {training['mix_source']}"
    yield from ((name.replace("_", " "), training[name]) for name in _SHOWN if name in training)
    yield "seed", config["seed"]
    yield "steps taken, step kept", f"{results['steps']}, {results['kept_step']}"
    if "exposures" in results:
        yield "times each sample was seen", f"{results['exposures']:.2f} on average"
    yield "code", f"`{manifest['git_commit']}`{', changed' if manifest['git_dirty'] else ''}"
    yield "versions", ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())


def _evaluation(one: Mapping[str, Any]) -> str:
    rows = [
        (
            cell,
            *_rates(numbers),
            _number(numbers.get("auroc"), numbers.get("auroc_ci")),
            numbers.get("n"),
            numbers.get("n_unscored"),
        )
        for cell, numbers in one["cells"].items()
    ]
    head = ("cell", "Miss Rate", "False Alarm Rate", "AUROC", "samples", "unscored")
    return f"`{one['data']}`, prompt `{one['prompt']}`, with 95 % intervals:\n\n" + _table(head, rows)


def _rates(numbers: Mapping[str, Any]) -> list[str]:
    return [_number(numbers.get(k), numbers.get(f"{k}_ci")) for k in ("miss_rate", "false_alarm_rate")]


def _number(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


_log = logging.getLogger(__name__)


def merge_run(study: Study) -> Path:
    """Write `<run>/merged`, the base with the run's adapter in it, in the run's dtype; returns that folder.

    The folder is a value for `monitor.path`. Raises `UserError` where the run or its base is not what it was.
    """
    run = _training_run(study.required_run())
    target = run / "merged"
    if target.is_dir():
        _log.info("merge: reusing %s", target)
        return target
    config, manifest = read_checked(run, "config.json"), read_finished(run)
    trained_on = manifest["identity"]["weights"]
    monitor = at_identity(_monitor(config), trained_on)
    if weights_identity(monitor) != trained_on:
        raise UserError(
            f"{run}: its base {monitor.path} is not the one that was trained; expected its weights"
        )
    temporary = run / f".merged.part-{os.getpid()}"
    try:
        dtype = manifest["identity"]["training"]["dtype"]
        weights = weights_folder(monitor, study.paths.models)
        refuse_unfit_adapter(run / "adapter", weights)
        merge(weights, run / "adapter", temporary, dtype)
        write_atomically(
            temporary / "README.md",
            model_card(run, merged=True, evaluations=_evaluations(study.paths.runs, run)),
        )
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def push_run(study: Study) -> Path:
    """Upload the adapter, or the merged model, to `push.repo`, or show what would be uploaded.

    The token is read by the hub's own client from the environment; it is never part of a config.
    """
    run = _training_run(study.required_run())
    folder = run / ("merged" if study.push.merged else "adapter")
    if not folder.is_dir():
        raise UserError(f"{folder}: not there; make it with `monitorbench merge run={run}`")
    card = model_card(run, merged=study.push.merged, evaluations=_evaluations(study.paths.runs, run))
    # Beside the adapter, whose own folder stays as it was trained.
    write_atomically(run / "README.md", card)
    record_files(run, "README.md")
    files = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name != "README.md")
    repo = study.push.repo
    if study.push.dry_run:
        _log.info(
            "dry run: would upload to %s: README.md, %s", repo or "(no push.repo given)", ", ".join(files)
        )
        _log.info("%s", card)
        return run
    if not repo:
        raise UserError("push.repo=null: no repository given; expected push.repo=OWNER/NAME")
    from huggingface_hub import HfApi

    try:
        api = HfApi()
        api.create_repo(repo, repo_type="model", private=study.push.private, exist_ok=True)
        api.upload_file(path_or_fileobj=card.encode(), path_in_repo="README.md", repo_id=repo)
        api.upload_folder(repo_id=repo, folder_path=folder, allow_patterns=files)
    except hub_errors() as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"push.repo={repo}: the hub refused ({type(error).__name__}: {reason})") from error
    return run


def _training_run(run: Path) -> Path:
    read_finished(run)
    if not (run / "learning_curve.json").is_file():
        raise UserError(f"run={run}: not a training run; expected a run directory of `monitorbench train`")
    return run


def _monitor(config: Mapping[str, Any]) -> Monitor:
    fields = {key: config["monitor"][key] for key in Monitor.model_fields if key in config["monitor"]}
    return Monitor.model_validate(fields, strict=False)


def _evaluations(runs: Path, run: Path) -> list[dict[str, Any]]:
    """Finished and scored evaluations of this adapter: prompt, data, and the numbers of each cell."""
    digest = adapter_sha256(run / "adapter")
    evaluations = []
    for file in sorted((runs / "evaluate").glob("*/metrics.json")):
        results = read_manifest(file.parent).get("results", {})
        judge = results.get("judge", {})
        if judge.get("adapter") != digest:
            continue
        monitors = read_checked(file.parent, file.name)["monitors"]
        cells = monitors.get(judge["name"], {}).get(judge["prompt"], {})
        evaluations.append({"prompt": judge["prompt"], "data": results["data"], "cells": cells})
    return evaluations
