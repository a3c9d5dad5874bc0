"""Every source there is: a new one is its declaration, its YAML in `conf/source`, and a line here."""

from monitorbench.sources import handwritten
from monitorbench.sources.declaration import SourceDeclaration
from monitorbench.sources.upstream import (
    agentdojo,
    bbq,
    code_fixes,
    coding_problems,
    cued,
    gsm8k,
    known_answers,
    labelled_responses,
    refusals,
)

SOURCES: dict[str, SourceDeclaration] = {
    source.name: source
    for source in (
        agentdojo.SOURCE,
        known_answers.AIME,
        cued.ANTHROPIC_SYCOPHANCY,
        bbq.SOURCE,
        labelled_responses.BETLEY_INSECURE,
        cued.COT_TRANSPARENCY,
        code_fixes.CWEVAL,
        labelled_responses.CYBERSECEVAL,
        known_answers.DFIR_METRIC,
        labelled_responses.DIASAFETY,
        known_answers.GPQA,
        gsm8k.SOURCE,
        handwritten.SOURCE,
        handwritten.STARTER_SOURCE,
        coding_problems.HUMANEVAL,
        refusals.JAILBREAKBENCH,
        code_fixes.JULIET,
        coding_problems.MBPP,
        known_answers.MMLU,
        labelled_responses.OPENAI_RBR,
        coding_problems.REFLEXION,
        code_fixes.SAFECODER,
        labelled_responses.SCHOOL_OF_REWARD_HACKS,
        code_fixes.SVEN,
        known_answers.TRUTHFULQA,
        refusals.XSTEST,
    )
}
"""Sources by name, as `conf/source` and `dataset.sources` have it."""
