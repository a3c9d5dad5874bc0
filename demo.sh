#!/usr/bin/env bash
# The whole study on one page: build the data, fine-tune two adapters and fit a probe, judge with four monitors
# and two prompts, lay them side by side, report. Arguments are Hydra overrides for every stage, such as
# engine=vllm. Each stage prints its directory as its last line; a finished stage is reused.
# All test samples and thirty steps, two to three times as long:
#   EVIDENCE_PAIRS=4 bash demo.sh dataset.test.pairs_per_cell=null dataset.validation.pairs_per_cell=3 \
#     training.max_steps=30 training.validate_every=15
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage() { python "$@" | tail -n 1; }
common=(experiment=demo "$@")

stage data_build/build.py "${common[@]}" >/dev/null
safety=$(stage train/sft.py "${common[@]}" dataset.train.subset=safety_permission)
all=$(stage train/sft.py "${common[@]}" dataset.train.subset=all)
# Hidden states are Transformers' to give, whatever judges else; its layer is chosen on all of the validation split.
head=$(stage train/fit.py "${common[@]}" engine=transformers "dataset.train.pairs_per_cell=${PROBE_PAIRS:-15}" dataset.validation.pairs_per_cell=null)

runs=()
for adapter in null "$safety" "$all"; do
  runs+=("$(stage eval/evaluate.py "${common[@]}" "monitor.adapter=$adapter" prompt=direct)")
  # Writing JSON takes a hundred times the tokens: the evidence prompt judges a few pairs of each cell.
  runs+=("$(stage eval/evaluate.py "${common[@]}" "monitor.adapter=$adapter" prompt=evidence "dataset.test.pairs_per_cell=${EVIDENCE_PAIRS:-2}")")
done
runs+=("$(stage eval/evaluate.py "${common[@]}" engine=transformers "monitor.head=$head" prompt=direct)")

transfer=$(stage eval/transfer.py "${common[@]}" "transfer.runs=[$(IFS=,; echo "${runs[*]}")]")
python eval/report.py "${common[@]}" "run=$transfer"
echo "report: $transfer/report.html"
