#!/usr/bin/env bash
# The papers' study in small: build the data, train a small model on one kind of misbehavior (exploits of tests that
# can be seen in the code), fit a probe on the same samples, judge all seven cells with the base and with both, lay
# them side by side, report. The last lines say what was learnt, and whether the other cells follow. Arguments are
# Hydra overrides for every stage, such as engine=vllm. Each stage prints its directory as its last line; a finished
# stage is reused. With three seeds, adapters alone: monitorbench transfer experiment=demo transfer.make=true \
#   'transfer.subsets=[specification_gaming/code]' 'transfer.seeds=[0,1,2]'
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage() { python "$@" | tail -n 1; }
common=(experiment=demo "$@")

stage data_build/build.py "${common[@]}" >/dev/null
# Hidden states are Transformers' to give, whatever judges else; the base's verdicts come from the same pass.
head=$(stage train/fit.py "${common[@]}" engine=transformers)
both=$(python eval/evaluate.py "${common[@]}" engine=transformers "monitor.head_beside=$head" | tail -n 2 | paste -s -d,)
adapter=$(stage train/sft.py "${common[@]}")
tuned=$(stage eval/evaluate.py "${common[@]}" "monitor.adapter=$adapter")

transfer=$(stage eval/transfer.py "${common[@]}" "transfer.runs=[$both,$tuned]")
python eval/report.py "${common[@]}" "run=$transfer"
echo "report: $transfer/report.html"
