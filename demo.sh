#!/usr/bin/env bash
# The papers' study in small: build the data, train a small model on one kind of misbehavior (code that gives the
# shown examples' results without computing them), fit a probe on the same samples, judge all seven cells with the
# model and with both, lay them side by side, report. The last lines say what was learnt, and whether the other
# cells follow. Arguments are Hydra overrides for every stage, such as engine=vllm. Each stage prints its directory
# as its last line; a finished stage is reused. With three trainings: make demo SEED="0 1 2"
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage() { python "$@" | tail -n 1; }
common=(experiment=demo "$@")

stage data_build/build.py "${common[@]}" >/dev/null
# Hidden states are Transformers' to give, whatever judges else; the untrained model's verdicts come from the same pass.
probe=$(stage train/fit.py "${common[@]}" engine=transformers)
runs=$(python eval/evaluate.py "${common[@]}" engine=transformers "monitor.head_beside=$probe" | tail -n 2 | paste -s -d,)
for seed in ${SEEDS:-0}; do
  adapter=$(stage train/sft.py "${common[@]}" "seed=$seed")
  runs+=",$(stage eval/evaluate.py "${common[@]}" "monitor.adapter=$adapter")"
done

transfer=$(stage eval/transfer.py "${common[@]}" "transfer.runs=[$runs]")
python eval/report.py "${common[@]}" "run=$transfer"
echo "report: $transfer/report.html"
