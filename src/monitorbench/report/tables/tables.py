"""The numbers as tables, of one result or of a multirun's: what is printed in a terminal of 80 columns.

Nothing in a name is read as markup.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from monitorbench.config.study import Study
from monitorbench.config.terminal import Console, opened
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.marks import headlines_in_words, marks_in_words, strata, title
from monitorbench.metrics.points_in_words import (
    by_question,
    deployed,
    flagged_above,
    inverted_heading,
    inverted_lines,
    inverted_remark,
    notes,
    promise_in,
    there,
)
from monitorbench.metrics.prompts import WordingChoice
from monitorbench.metrics.registry import cell_numbers
from monitorbench.metrics.results import Results, numbers_at, short_names
from monitorbench.metrics.table import Numbers
from monitorbench.metrics.written import shown
from monitorbench.records import Split
from monitorbench.report.tables.overall import (
    answers_in_words,
    cost_row,
    doubt_lines,
    measured,
    sent_on_in_words,
    unscored_lines,
)
from monitorbench.report.tables.prompts import CHOICE_COLUMNS, choice_rows, in_words, prompt_blocks
from monitorbench.report.tables.terminal import print_rows, say, say_lines, start_table
from monitorbench.report.tables.training import print_transfer
from monitorbench.runs.directory import is_finished
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.scoring.points import points_at

_MONITOR_COLUMNS = (
    ("monitor", 21),
    ("n", 5),
    ("unsc.", 5),
    ("miss rate", 13),
    ("false alarms", 13),
    ("AUROC", 13),
)
_METRICS = ("n", "n_unscored", "miss_rate", "false_alarm_rate", "auroc")
_POINT_COLUMNS = (
    ("monitor", 20),
    ("above", 8),
    ("miss rate", 13),
    ("false alarms", 13),
    ("expected cost", 16),
)
_PROMPT_COLUMNS = (("prompt", 16), ("unsc.", 5), ("miss rate", 17), ("false alarms", 17), ("AUROC", 17))
_COST_COLUMNS = (("monitor", 26), ("tokens", 8), ("seconds", 8), ("AUROC", 13), ("MR at FAR 5 %", 13))


def print_tables(console: Console, results: Results, *, is_brief: bool = False) -> None:
    """Print the answer first, then what supports it; in brief the thresholds and overall numbers alone."""
    _print_answer(console, results)
    _print_points(console, results)
    _print_monitors(console, results, [OVERALL] if is_brief else None)
    if is_brief:
        return
    say_lines(console, "Unscored, by reason", unscored_lines(results))
    say_lines(console, "Scores to doubt", doubt_lines(results))
    say_lines(console, inverted_heading(), inverted_lines(results))
    _print_prompts(console, results)
    print_costs(console, results)
    print_transfer(console, results)


def _print_answer(console: Console, results: Results) -> None:
    """Print what to deploy, or why nothing, and what to know of it."""
    say(console, "")
    say(console, results["decision"]["sentence"], "bold")
    for remark in (*results["decision"]["remarks"], *inverted_remark(results)):
        say(console, remark)


def _print_points(console: Console, results: Results) -> None:
    """Print the monitors at calibrated thresholds, each with what it promises and what it would mean."""
    points = results.get("operating_points", {})
    if points:
        names = short_names(results)
        start_table(
            console, "At calibrated thresholds (a sample is flagged where its score is above)", _POINT_COLUMNS
        )
        for monitor, by_prompt in points.items():
            for prompt, point in by_prompt.items():
                numbers = numbers_at(results, monitor, prompt)
                calibration = numbers_at(results, monitor, prompt, Split.CALIBRATION)
                row = [
                    f"{names[monitor]} · {prompt}",
                    flagged_above(point["thresholds"]),
                    *(
                        shown(numbers[metric])
                        for metric in ("miss_rate", "false_alarm_rate", "expected_cost")
                    ),
                ]
                print_rows(console, _POINT_COLUMNS, [row])
                promised = promise_in(results["decision"], monitor, prompt, point)
                say(console, f"  promised {promised}; {by_question(numbers)}", "dim")
                more = [
                    deployed(numbers, results["stakes"]["base_rate"]),
                    there(calibration) if calibration else "",
                ]
                say(console, f"  {'; '.join(filter(None, more))}", "dim")
                for note in notes(results["dataset"]["directory"], point):
                    say(console, f"  {note}", "bold")


def _print_monitors(console: Console, results: Results, cells: Sequence[str] | None = None) -> None:
    """Print for each prompt and cell a block: both rates, AUROC, n and the unscored of each monitor.

    Below a cell stand its strata, of the monitors alone; behind the last block what the marks mean. `cells`
    are those to print; None prints all.
    """
    names = short_names(results)

    def print_part(monitors: Sequence[str], prompt: str, part: str) -> None:
        rows = [
            (f"  {names[monitor]}", numbers)
            for monitor in monitors
            if (numbers := results["table"].lookup(monitor, prompt, part))
        ]
        _print_numbers(console, rows)

    for prompt in results["table"].prompts():
        prompt_monitors = [name for name, asked in results["table"].judged() if asked == prompt]
        start_table(
            console,
            f"Prompt: {prompt}, {answers_in_words(results, prompt_monitors, prompt)}   "
            "(95 % intervals; unsc.: no label)",
            _MONITOR_COLUMNS,
        )
        for cell in results["table"].cells_under(prompt):
            if cells is not None and cell not in cells:
                continue
            say(console, title(results, cell), "bold")
            monitors = results["table"].shown_in(cell)
            print_part(monitors, prompt, cell)
            judges = [monitor for monitor in monitors if not results["table"].is_reference(monitor)]
            for stratum in strata(results, prompt, cell):
                say(console, f"  {title(results, stratum)}", "bold")
                print_part(judges, prompt, stratum)
    for line in (*headlines_in_words(results), *marks_in_words(results)):
        say(console, line, "dim")


def _print_numbers(console: Console, rows: Sequence[tuple[str, Numbers]]) -> None:
    fields = [[name, *(shown(numbers[metric]) for metric in _METRICS)] for name, numbers in rows]
    print_rows(console, _MONITOR_COLUMNS, fields)


def _print_prompts(console: Console, results: Results) -> None:
    """Print the numbers of each monitor under each of several prompts, paired differences below them."""
    for block in prompt_blocks(results):
        start_table(console, f"{block.monitor} by prompt, over the same {block.n:,} samples", _PROMPT_COLUMNS)
        for row in block.rows:
            lines = [[f"  {row.prompt}", *row.numbers]]
            if row.differences:
                lines.append([f"    minus {block.base}", "", *row.differences])
            print_rows(console, _PROMPT_COLUMNS, lines)
        if block.spread:
            say(console, block.spread)
    names = short_names(results)
    for monitor, choice in results.get("wordings", {}).items():
        say(console, f"{names[monitor]}: {in_words(choice)}")


def print_choice(console: Console, choice: WordingChoice, monitor: str) -> None:
    """A row for each prompt, the chosen one in bold, and the choice in words."""
    start_table(
        console, f"{monitor} by prompt, on the {choice['split']} split   (95 % intervals)", CHOICE_COLUMNS
    )
    for row in choice_rows(choice):
        print_rows(console, CHOICE_COLUMNS, [row], "bold" if row[0] == choice["chosen"] else "")
    say(console, in_words(choice))


def print_costs(console: Console, results: Results) -> None:
    """Print the cost of a verdict beside its quality by monitor and prompt; of a cascade what it asked."""
    rows = measured(results)
    if not rows:
        return
    names = short_names(results)
    start_table(
        console, "Cost per verdict: means of what was really asked, tokens read and written", _COST_COLUMNS
    )
    for row in rows:
        fields = [f"{names[row.monitor]} · {row.prompt}", *cost_row(row)]
        print_rows(console, _COST_COLUMNS, [fields])
        if row.sent_on:
            say(console, f"  {sent_on_in_words(row.sent_on)}", "dim")


_HASH = 4
"""Characters of a directory's hash that tell runs of one name apart."""


def show_sweep(jobs: Sequence[tuple[Study, Path]]) -> None:
    """Print a row for each run of the sweep to stderr, in its order; at a threshold where one was applied."""
    done = [(study, directory) for study, directory in jobs if is_finished(directory)]
    read = []
    for study, directory in done:
        evaluation = read_evaluation(study.paths.data, directory)
        wanted = [study.operating_point] if study.operating_point else []
        points = points_at(wanted, [evaluation], other_dataset=study.score.other_dataset)
        name = f"{evaluation.monitor} · {evaluation.prompt}" + "".join(
            f" at the threshold of {point.calibrated_on}" if point.is_elsewhere else " at threshold"
            for point in points
        )
        judged = points[0].evaluation.judged if points else evaluation.judged
        read.append((name, cell_numbers(judged)))
    counts = Counter(name for name, _ in read)
    rows = [
        (name if counts[name] == 1 else f"{name} {directory.name.rpartition('-')[2][:_HASH]}", numbers)
        for (name, numbers), (_, directory) in zip(read, done, strict=True)
    ]
    console = opened(stderr=True)
    start_table(console, f"All {len(rows)} runs, overall   (95 % intervals)", _MONITOR_COLUMNS)
    _print_numbers(console, rows)
