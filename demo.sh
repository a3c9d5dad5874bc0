#!/usr/bin/env bash
# The papers' study in small: build the data, train a small model on one kind of misbehavior (exploits of tests,
# in code), fit a probe on the same samples, judge all seven cells with the base and with both, lay them side by
# side, report. Its last lines say what was learnt, and whether the other cells follow. Arguments are Hydra
# overrides for every stage, such as engine=vllm. Each stage prints its directory as its last line; a finished
# stage is reused. With three seeds, about three times as long: SEEDS="0 1 2" bash demo.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage() { python "$@" | tail -n 1; }
common=(experiment=demo "$@")

stage data_build/build.py "${common[@]}" >/dev/null
runs=("$(stage eval/evaluate.py "${common[@]}")")
for seed in ${SEEDS:-0}; do
  adapter=$(stage train/sft.py "${common[@]}" "seed=$seed")
  runs+=("$(stage eval/evaluate.py "${common[@]}" "seed=$seed" "monitor.adapter=$adapter")")
  # Hidden states are Transformers' to give, whatever judges else.
  probe=$(stage train/fit.py "${common[@]}" engine=transformers "seed=$seed")
  runs+=("$(stage eval/evaluate.py "${common[@]}" engine=transformers "seed=$seed" "monitor.head=$probe")")
done

transfer=$(stage eval/transfer.py "${common[@]}" "transfer.runs=[$(IFS=,; echo "${runs[*]}")]")
python eval/report.py "${common[@]}" "run=$transfer"
echo "report: $transfer/report.html"
