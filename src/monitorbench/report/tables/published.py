"""The points that the benchmark's paper printed, to be set beside ours: on another dataset."""

from typing import NamedTuple

ARXIV = "2601.05752"
CORRELATION = -0.54
"""Pearson's r of MR and FAR over the paper's monitors, one point each."""


class Published(NamedTuple):
    """One monitor's overall (MR, FAR) under both prompts."""

    monitor: str
    direct: tuple[float, float]
    evidence: tuple[float, float]


PUBLISHED = (
    Published("GPT-4o-mini", (0.36, 0.32), (0.25, 0.50)),
    Published("DeepSeek-V3", (0.17, 0.41), (0.13, 0.53)),
    Published("Gemini-2.5-Flash", (0.15, 0.36), (0.07, 0.58)),
    Published("Qwen3-14B", (0.30, 0.39), (0.20, 0.36)),
)
"""arXiv:2601.05752, the rows over all subsets."""


class PublishedSft(NamedTuple):
    """One cell of the paper's fine-tuning study, as printed."""

    monitor: str
    trained_on: str
    tested_on: str
    base_miss_rate: float
    miss_rate: float
    false_alarm_rate: float | None
    """False alarm rate of the fine-tuned monitor; None where none is printed."""


PUBLISHED_SFT = (
    PublishedSft("Qwen3-4B", "safety_permission/code", "safety_permission/code", 0.59, 0.00, 0.03),
    PublishedSft("Qwen3-4B", "safety_permission/code", "specification_gaming/code", 0.49, 0.86, None),
    PublishedSft("Qwen3-8B", "safety_permission/code", "specification_gaming/code", 0.433, 0.899, None),
    PublishedSft("Qwen3-4B", "all", "specification_gaming", 0.49, 0.70, None),
)
"""arXiv:2601.05752, the study of supervised fine-tuning. Not in it as cells: trained on Sycophancy & Bias QA,
FAR .64–.93 with a low MR almost everywhere."""
