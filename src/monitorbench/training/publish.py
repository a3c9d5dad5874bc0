"""Publishing of a training run: a merged model folder, or a repository on the hub with its card.

A push shows what it would do unless `push.dry_run` is false. The card is made of the run's own files and
of finished evaluations of the same adapter; it states what is not known as not known.
"""

import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.study import Monitor, Study
from monitorbench.engines.stored.adapter import adapter_sha256, refuse_unfit_adapter
from monitorbench.engines.weights import at_identity, merge, weights_folder, weights_identity
from monitorbench.runs.directory import read_checked, read_finished, read_manifest, record_files
from monitorbench.runs.files import write_atomically
from monitorbench.sources.fetch import hub_errors
from monitorbench.training.card import model_card

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
        raise UserError(f"{folder}: not there; make it with train/merge.py run={run}")
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
        raise UserError(f"run={run}: not a training run; expected a run directory of train/sft.py")
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
