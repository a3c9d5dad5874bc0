"""Every source there is: a new one is its file, its YAML in `conf/source`, and its lines here.

An import and an entry.
"""

from monitorbench.sources import handwritten
from monitorbench.sources.declaration import SourceDeclaration
from monitorbench.sources.safety_permission import (
    agentdojo,
    betley_insecure,
    cweval,
    cyberseceval,
    diasafety,
    hh_rlhf,
    jailbreakbench,
    juliet,
    openai_rbr,
    safecoder,
    sven,
    xstest,
)
from monitorbench.sources.specification_gaming import (
    dfir_metric,
    humaneval,
    mbpp,
    reward_hacking_logs,
    school_of_reward_hacks,
    truthfulqa,
)
from monitorbench.sources.sycophancy_bias import (
    aime,
    anthropic_sycophancy,
    bbq,
    cot_transparency,
    gpqa,
    gsm8k,
    mmlu,
    sycon_bench,
)

SOURCES: dict[str, SourceDeclaration] = {
    source.name: source
    for source in (
        agentdojo.SOURCE,
        aime.SOURCE,
        anthropic_sycophancy.SOURCE,
        bbq.SOURCE,
        betley_insecure.SOURCE,
        cot_transparency.SOURCE,
        cweval.SOURCE,
        cyberseceval.SOURCE,
        dfir_metric.SOURCE,
        diasafety.SOURCE,
        gpqa.SOURCE,
        gsm8k.SOURCE,
        handwritten.SOURCE,
        handwritten.STARTER_SOURCE,
        hh_rlhf.SOURCE,
        hh_rlhf.TRAIN_SOURCE,
        humaneval.SOURCE,
        jailbreakbench.SOURCE,
        juliet.SOURCE,
        mbpp.SOURCE,
        mmlu.SOURCE,
        openai_rbr.SOURCE,
        reward_hacking_logs.SOURCE,
        safecoder.SOURCE,
        school_of_reward_hacks.SOURCE,
        sven.SOURCE,
        sycon_bench.SOURCE,
        truthfulqa.SOURCE,
        xstest.SOURCE,
    )
}
"""Sources by name, as `conf/source` and `dataset.sources` have it."""
