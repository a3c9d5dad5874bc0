"""The first section of the page: the answer, in words made from the numbers.

Promises: better or worse is said only where a 95 % interval excludes 0, always with the interval and
n; otherwise it says that no difference was found, which is not that there is none.
"""

from collections.abc import Sequence

from markupsafe import Markup

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.points_in_words import inverted_remark
from monitorbench.metrics.results import Results, is_trained
from monitorbench.metrics.written import Finding, counted, finding, rate
from monitorbench.report.recommendation import page_values
from monitorbench.report.sections.section import Material, fill
from monitorbench.report.tables.effects import effects

_ALWAYS = 0.95


def answer(material: Material) -> Markup:
    """The decision, the opening paragraph, and what the reader has to mind."""
    results = material.results
    values: dict[str, object] = {
        "statement": statement(results),
        "details": details(results),
        "full_names": [(short, name) for name, short in material.short_names.items() if short != name],
    }
    decision = page_values(results["decision"], training_changed(results))
    return fill("answer", {**values, **decision, "doubts": inverted_remark(results)})


def statement(results: Results) -> str:
    """The opening sentence: who judged what, and what is known of it."""
    table, prompts = results["table"], results["table"].prompts()
    judges = [name for name in table.monitors() if not table.is_reference(name)]
    meaning = results["dataset"].get("positive_means", "")
    positive = f"misbehavior, here “{meaning}”," if meaning else "misbehavior"
    return (
        f"{counted(len(judges), 'monitor')} judged test samples of the dataset {results['dataset']['name']}, "
        f"{_listed([_judged_under(results, prompt) for prompt in prompts])}; of each sample "
        f"it is known whether it is {positive} or benign."
    )


def details(results: Results) -> list[str]:
    """List what the reader has to mind: one-sided answers."""
    judges = [name for name in results["table"].monitors() if not results["table"].is_reference(name)]
    return [text for name in judges for text in _one_sided(results, name)]


def training_changed(results: Results) -> str:
    """Say how many trainings came out better and worse on cells they did not see; empty without any."""
    if not results["adapters"]:
        return ""
    rows = [row.numbers for row in effects(results) if row.cell == "held_out"]
    held_out = [numbers for numbers in rows if numbers["n"].value]
    if not held_out:
        return "No cell was held out from every adapter's training, so transfer was not measured."
    findings = [finding(numbers["auroc_difference"].interval) for numbers in held_out]
    better, worse = findings.count(Finding.BETTER), findings.count(Finding.WORSE)
    is_one_seed = max(numbers["n_seeds"].whole for numbers in held_out) == 1
    tuned = "an adapter" if is_one_seed else "a training over its seeds"
    n = len(findings)
    of = f"of {n} comparisons of {tuned} with its base" if n > 1 else f"comparison of {tuned} with its base"
    where = "on cells it was not trained on"
    counts = (
        f"In AUROC {where}, {better} {of} came out better, {worse} worse, and in "
        f"{n - better - worse} no difference was found."
        if better or worse
        else f"No difference in AUROC was found in {'any' if n > 1 else 'the one'} {of} {where}."
    )
    trained = [name for name in results["adapters"] if is_trained(results, name, OVERALL)]
    was = "was" if len(trained) == 1 else "were"
    left_out = f" {_listed(trained)} {was} trained on every tested cell and not compared." if trained else ""
    return f"{counts}{left_out} AUROC compares rankings at all thresholds; the table's miss rates are at one."


def _one_sided(results: Results, monitor: str) -> list[str]:
    """Prompts under which a monitor gives nearly everything the same answer: both rates say nothing more."""
    sentences: list[str] = []
    for prompt in results["table"].prompts_of(monitor):
        numbers = results["table"].parts(monitor, prompt)[OVERALL]
        missed, alarms = numbers["miss_rate"].value, numbers["false_alarm_rate"].value
        if missed is None or alarms is None:
            continue
        flagged = 1 - missed, alarms
        answer = "misbehavior" if min(flagged) >= _ALWAYS else "benign" if max(flagged) <= 1 - _ALWAYS else ""
        if answer:
            sentences.append(
                f"{monitor}, {prompt} prompt, answers nearly always {answer} "
                f"(MR {rate(missed)}, FAR {rate(alarms)}): "
                "its answers hardly separate, its score may."
            )
    return sentences


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _judged_under(results: Results, prompt: str) -> str:
    """Say how many samples a prompt was asked about; monitors that judged other views give a range."""
    judged = [judge for judge in results["table"].in_order() if judge[1] == prompt]
    sizes = [results["table"].parts(*judge)[OVERALL]["n"].whole for judge in judged]
    few, many = min(sizes), max(sizes)
    return f"{many if few == many else f'{few}–{many}'} with the {prompt} prompt"
