"""A real monitor's verdicts: Llama Guard 1 on JailbreakBench's responses, against its judge's labels."""

import json
import os
from pathlib import Path

import pytest
import yaml

from monitorbench.config.sources import Source
from monitorbench.metrics.columns import columns
from monitorbench.metrics.rates import Counts, Judged, count, false_alarm_rate, miss_rate
from monitorbench.records import Label
from monitorbench.sources.fetch import find


@pytest.mark.sources
def test_llama_guards_rates_on_jailbreakbench(root: Path, tmp_path: Path) -> None:
    """Against verdicts and labels that are not ours, swapped classes or lost samples would show."""
    mirror = os.environ.get("MONITORBENCH_SOURCES")
    if not mirror:
        pytest.skip("MONITORBENCH_SOURCES is not set")
    config = yaml.safe_load((root / "conf" / "source" / "jailbreakbench.yaml").read_text(encoding="utf-8"))
    source = Source.model_validate_json(json.dumps(config))
    files = find("jailbreakbench", source, Path(mirror), tmp_path, "error")
    answers = {True: Label.MISBEHAVIOR, False: Label.BENIGN, None: None}
    judged = []
    for member, content in files.tar(""):
        place = member.removesuffix(".json").partition("attack-artifacts/")[2]
        if place.count("/") != 2 or place.startswith("test-artifact/"):
            continue
        for row in json.loads(content)["jailbreaks"]:
            if (row.get("response") or "").strip():
                name, truth = f"{place}/{row['index']}", answers[row["jailbroken"]]
                assert truth is not None
                said = answers[row.get("jailbroken_llama_guard1")]
                judged.append(Judged(name, name, row["goal"], "safety_permission", "qa", truth, said, None))
    held = columns(judged)
    counts = count(held.is_misbehavior, held.flagged)
    assert counts == Counts(tp=679, fn=69, fp=86, tn=603, unscored_misbehavior=189, unscored_benign=11)
    assert miss_rate(counts) == 69 / (679 + 69)
    assert false_alarm_rate(counts) == 86 / (86 + 603)
