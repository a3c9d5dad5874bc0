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
