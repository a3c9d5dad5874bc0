"""The numbers as tables: what is printed in a terminal of 80 columns. Nothing in a name is read as markup."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from monitorbench.config.terminal import Console
from monitorbench.metrics import reading
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.points_in_words import by_question, deployed, flagged_above, notes, promise, there
from monitorbench.metrics.reading import ComparedTraining
from monitorbench.metrics.results import Results, numbers_at
from monitorbench.metrics.table import Numbers
from monitorbench.metrics.trainings import doses_in_words
from monitorbench.metrics.wordings import WordingChoice
from monitorbench.metrics.written import (
    DASH,
    count,
    finding,
    shown,
    signed_with_interval,
    value_of,
)
from monitorbench.records import Split, reasons_in_words
from monitorbench.report.tables import transfer as transfer_tables
from monitorbench.report.tables.costs import cost_row, measured, sent_on_in_words
from monitorbench.report.tables.inverted import heading as inverted_heading
from monitorbench.report.tables.inverted import inverted_lines, inverted_remark
from monitorbench.report.tables.prompts import prompt_blocks
from monitorbench.report.tables.scores import doubt_lines
from monitorbench.report.tables.terminal import print_rows, say, say_lines, start_table
from monitorbench.report.tables.transfer_signs import (
    above_chance_in_words,
    direction_rows,
    directions_in_words,
    negative_in_words,
    negative_rows,
)
from monitorbench.report.tables.wordings import COLUMNS as CHOICE_COLUMNS
from monitorbench.report.tables.wordings import choice_rows, in_words

WIDTH = 80
_WHERE = {OVERALL: "all", "trained": "trained", "held_out": "held out"}

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
_WORD_COLUMNS = (("word", 22), ("cells", 54))
_NEGATIVE_COLUMNS = (
    ("trained on", 18),
    ("tested on", 16),
    ("AUROC", 9),
    ("from the base", 12),
    ("in words", 17),
)
_COSINES = 8
"""Cosines in a line of 80 columns."""
_DIFFERENCE_COLUMNS = (
    ("tested on", 18),
    ("n", 4),
    ("difference", 17),
    ("in words", 19),
    ("bag of words", 13),
)


class Unscored(NamedTuple):
    """The answers of a monitor under a prompt that are no label, and how many are so for which reason."""

    monitor: str
    prompt: str
    n: int
    n_unscored: int
    reasons: Mapping[str, int]


def unscored_rows(results: Results) -> list[Unscored]:
    """Every monitor and prompt that has unscored answers."""
    by_monitor = results.get("unscored", {})
    return [
        Unscored(monitor, prompt, results["table"].parts(monitor, prompt)[OVERALL]["n"].whole, n, reasons)
        for monitor in reading.monitors(results)
        for prompt, reasons in by_monitor.get(monitor, {}).items()
        if (n := sum(reasons.values()))
    ]


def unscored_lines(results: Results) -> list[str]:
    """Return a line for each monitor and prompt with unscored answers: their number and reasons."""
    names = reading.short_names(results)
    return [
        f"{names[row.monitor]} · {row.prompt} prompt: "
        f"{count(row.n_unscored)}: {reasons_in_words(row.reasons)}"
        for row in unscored_rows(results)
    ]


def show_tables(
    results: Results,
    *,
    stderr: bool = False,
    is_brief: bool = False,
) -> None:
    """Print the tables, at the terminal's width or 80 columns; to stdout, or beside it."""
    console = Console(stderr=stderr)
    wide = console if console.is_terminal else Console(stderr=stderr, width=WIDTH)
    print_tables(wide, results, is_brief=is_brief)


def print_tables(
    console: Console,
    results: Results,
    *,
    is_brief: bool = False,
) -> None:
    """Print the answer first, then what supports it; in brief the thresholds and overall numbers alone."""
    print_answer(console, results)
    print_points(console, results)
    print_monitors(console, results, [OVERALL] if is_brief else None)
    if is_brief:
        return
    say_lines(console, "Unscored, by reason", unscored_lines(results))
    say_lines(console, "Scores to doubt", doubt_lines(results))
    say_lines(console, inverted_heading(), inverted_lines(results))
    print_prompts(console, results)
    print_costs(console, results)
    print_words(console, results)
    print_directions(console, results)
    print_differences(console, results)


def print_answer(console: Console, results: Results) -> None:
    """Print what to deploy, or why nothing, and what to know of it."""
    say(console, "")
    say(console, results["decision"]["sentence"], "bold")
    for remark in (*results["decision"]["remarks"], *inverted_remark(results)):
        say(console, remark)


def print_points(console: Console, results: Results) -> None:
    """Print the monitors at calibrated thresholds, each with what it promises and what it would mean."""
    points = results.get("operating_points", {})
    if points:
        names = reading.short_names(results)
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
                say(console, f"  promised {promise(point['thresholds'])}; {by_question(numbers)}", "dim")
                more = [
                    deployed(numbers, results["stakes"]["base_rate"]),
                    there(calibration) if calibration else "",
                ]
                say(console, f"  {'; '.join(filter(None, more))}", "dim")
                for note in notes(results["dataset"]["directory"], point):
                    say(console, f"  {note}", "bold")


def print_monitors(console: Console, results: Results, cells: Sequence[str] | None = None) -> None:
    """Print for each prompt and cell a block: both rates, AUROC, n and the unscored of each monitor.

    Below a cell stand its strata, of the monitors alone; behind the last block what the marks mean. `cells`
    are those to print; None prints all.
    """
    names = reading.short_names(results)
    for prompt in reading.prompts(results):
        start_table(
            console,
            f"Prompt: {prompt}   (95 % intervals; unsc. = answers that are no label)",
            _MONITOR_COLUMNS,
        )
        for cell in reading.cells(results, prompt):
            if cells is not None and cell not in cells:
                continue
            say(console, reading.title(results, cell), "bold")
            rows = [
                [f"  {names[monitor]}", *(shown(numbers[metric]) for metric in _METRICS)]
                for monitor in reading.shown_in(results, cell)
                if (numbers := reading.lookup(results, monitor, prompt, cell))
            ]
            print_rows(console, _MONITOR_COLUMNS, rows)
            for stratum in reading.strata(results, prompt, cell):
                say(console, f"  {reading.title(results, stratum)}", "bold")
                rows = [
                    [f"  {names[monitor]}", *(shown(numbers[metric]) for metric in _METRICS)]
                    for monitor in reading.shown_in(results, cell)
                    if not reading.is_reference(results, monitor)
                    and (numbers := reading.lookup(results, monitor, prompt, stratum))
                ]
                print_rows(console, _MONITOR_COLUMNS, rows)
    for line in (*reading.headlines_in_words(results), *reading.marks_in_words(results)):
        say(console, line, "dim")


def print_sweep(console: Console, cells: Sequence[tuple[str, Numbers]]) -> None:
    """One table of many runs, by name: both rates, AUROC, n and the unscored of each."""
    start_table(console, f"All {len(cells)} runs, overall   (95 % intervals)", _MONITOR_COLUMNS)
    rows = [[name, *(shown(numbers[metric]) for metric in _METRICS)] for name, numbers in cells]
    print_rows(console, _MONITOR_COLUMNS, rows)


def print_prompts(console: Console, results: Results) -> None:
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
    names = reading.short_names(results)
    for monitor, choice in results.get("wordings", {}).items():
        say(console, f"{names[monitor]}: {in_words(choice)}")


def show_choice(choice: WordingChoice, monitor: str) -> None:
    """Print the prompts that one was chosen from to stdout, at the terminal's width or 80 columns."""
    console = Console()
    print_choice(console if console.is_terminal else Console(width=WIDTH), choice, monitor)


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
    names = reading.short_names(results)
    start_table(
        console, "Cost per verdict: means of what was really asked, tokens read and written", _COST_COLUMNS
    )
    for row in rows:
        fields = [f"{names[row.monitor]} · {row.prompt}", *cost_row(row)]
        print_rows(console, _COST_COLUMNS, [fields])
        if row.sent_on:
            say(console, f"  {sent_on_in_words(row.sent_on)}", "dim")


def print_words(console: Console, results: Results) -> None:
    """Print what happened in which cells, by training and prompt, in the matrix's words."""
    matrix = results["matrix"]
    if not matrix["words"]:
        return
    names = reading.short_names(results)
    say(console, "")
    say(console, f"What training did, against the base (Holm over {matrix['n_tests']} tests)", "bold")
    for training, by_prompt in matrix["words"].items():
        for prompt in by_prompt:
            subject = transfer_tables.subject(results, training, names)
            say(console, f"{subject} · {prompt} prompt", "bold")
            by_word = transfer_tables.words_of(results, training, prompt)
            rows = [[f"  {word}", ", ".join(cells)] for word, cells in by_word]
            print_rows(console, _WORD_COLUMNS, rows)
    sentences = (
        *transfer_tables.counted_words(results),
        *doses_in_words(results.get("exposures", {})),
        *transfer_tables.objectives_in_words(results),
    )
    for sentence in (*sentences, *above_chance_in_words(results, names)):
        say(console, sentence)
    print_negative(console, results)


def print_negative(console: Console, results: Results) -> None:
    """The held-out cells that a training made worse: upside down, or discrimination lost."""
    if not (summary := negative_in_words(results)):
        return
    say(console, summary)
    rows = negative_rows(results, reading.short_names(results))
    if rows:
        print_rows(console, _NEGATIVE_COLUMNS, [[name for name, _ in _NEGATIVE_COLUMNS]], "dim")
    for row in rows:
        word = f"upside down, {row.p}; {row.word}" if row.is_inverted else row.word
        cells = [f"  {row.training}", row.cell, row.auroc, row.difference, word]
        print_rows(console, _NEGATIVE_COLUMNS, [cells])


def print_directions(console: Console, results: Results) -> None:
    """Cosines of linear heads, a row a training, in blocks of so many columns as a line holds."""
    facts = results.get("directions")
    if facts is None:
        return
    names = reading.short_names(results)
    say(console, "")
    say(console, "Directions of the linear heads: cosines (diagonal: two seeds of one training)", "bold")
    rows = direction_rows(facts, names)
    for start in range(0, len(rows), _COSINES):
        block = rows[start : start + _COSINES]
        columns = [("", 2), ("", 28), *((row[0], 4) for row in block)]
        print_rows(console, columns, [[name for name, _ in columns]], "dim")
        cosines = slice(2 + start, 2 + start + _COSINES)
        print_rows(console, columns, [[*row[:2], *row[cosines]] for row in rows])
    for sentence in directions_in_words(results, names):
        say(console, sentence)


def print_differences(console: Console, results: Results) -> None:
    """Print AUROC minus the base's by training and prompt, on trained and on held-out cells."""
    compared = reading.comparisons(results)
    if not compared:
        return
    names = reading.short_names(results)
    start_table(
        console, "AUROC of each training minus its base's (same samples, 95 % intervals)", _DIFFERENCE_COLUMNS
    )
    for training, prompt in dict.fromkeys(
        (comparison.training, comparison.prompt) for comparison in compared
    ):
        say(console, f"{transfer_tables.subject(results, training, names)} · {prompt} prompt", "bold")
        here = [
            comparison
            for comparison in compared
            if (comparison.training, comparison.prompt) == (training, prompt)
        ]
        print_rows(console, _DIFFERENCE_COLUMNS, [_difference_row(comparison) for comparison in here])
    say(console, "Bag of words: AUROC over all its samples there; (mean): of its AUROCs by cell.", "dim")


def _difference_row(one: ComparedTraining) -> list[str]:
    bounds = one.difference["auroc_difference_ci"]
    return [
        f" {where(one)}",
        str(one.difference["n_both_with_score"]),
        signed_with_interval(one.difference["auroc_difference"], bounds),
        str(finding(bounds)),
        bag_of_words_text(one),
    ]


def where(one: ComparedTraining) -> str:
    """The cells of a comparison, in words of at most 17 characters."""
    return f"{_WHERE[one.where]}, {one.n_cells} cell{'s' if one.n_cells != 1 else ''}"


def bag_of_words_text(one: ComparedTraining) -> str:
    """Bag of words' AUROC beside a difference, with its interval or as the mean it is."""
    beside = one.bag_of_words
    if beside.is_mean and beside.auroc is not None:
        return f"{value_of(beside.auroc)} (mean)"
    return shown(beside.auroc) if beside.auroc else DASH
