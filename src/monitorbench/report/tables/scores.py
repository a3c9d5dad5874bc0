"""Whose answers are no label, and whose scores are bounds, contradict their label or are mostly equal."""

from monitorbench.metrics import reading
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.results import Results
from monitorbench.metrics.score_facts import COUNTED_AS, ScoreFacts, doubts, share_of
from monitorbench.metrics.written import count
from monitorbench.records import reasons_in_words


def unscored_lines(results: Results) -> list[str]:
    """Return a line for each monitor and prompt with unscored answers: their number and reasons."""
    names = reading.short_names(results)
    return [
        f"{names[monitor]} · {prompt} prompt: {count(sum(reasons.values()))}: {reasons_in_words(reasons)}"
        for monitor, prompt in reading.judged(results)
        if sum((reasons := results["unscored"].get(monitor, {}).get(prompt, {})).values())
    ]


def unscored_rows(results: Results) -> list[tuple[str, str, str, str]]:
    """Return such a row for the page: monitor, prompt, how many of all, how many for which reason."""
    names, rows = reading.short_names(results), []
    for monitor, prompt in reading.judged(results):
        reasons = results["unscored"].get(monitor, {}).get(prompt, {})
        if n := sum(reasons.values()):
            of_all = f"{n:,} of {results['table'].parts(monitor, prompt)[OVERALL]['n'].whole:,}"
            listed = ", ".join(f"{n} {reason}" for reason, n in reasons.items())
            rows.append((names[monitor], prompt, of_all, listed))
    return rows


def doubt_lines(results: Results) -> list[str]:
    """Return a line for the terminal for each kind of doubtful scores."""
    names = reading.short_names(results)
    return [
        f"{names[monitor]} · {prompt} prompt: {doubt}"
        for monitor, prompt, facts in _with_scores(results)
        for doubt in doubts(facts)
    ]


def doubted_rows(results: Results) -> list[tuple[str, ...]]:
    """Return a row for the page for each monitor and prompt with doubtful scores."""
    names = reading.short_names(results)
    return [
        (
            names[monitor],
            prompt,
            share_of(facts["n_censored"], facts["n_with_score"]),
            share_of(facts["n_against"], facts["n_both"]),
            share_of(facts["n_most_frequent"], facts["n_with_score"]),
            f"{n:,}, {COUNTED_AS[facts.get('missing', 'leave_out')]}"
            if (n := facts.get("n_missing", 0))
            else "0",
        )
        for monitor, prompt, facts in _with_scores(results)
        if doubts(facts)
    ]


def _with_scores(results: Results) -> list[tuple[str, str, ScoreFacts]]:
    return [
        (monitor, prompt, facts)
        for monitor in reading.monitors(results)
        for prompt, facts in results["scores"].get(monitor, {}).items()
    ]
