"""The card of a trained monitor, in Markdown with the hub's YAML head."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitorbench.runs.directory import read_checked, read_finished

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
