"""Draw the documentation's pictures: the first screen of a page, and the study's figure from its table.

python docs/images/draw.py

Draws the figure of docs/study.md, and from README's command the picture of README.md, docs/index.md and
docs/real-judges.md.
Takes seconds; a page wants Chromium (`make system-deps`). A picture holds a hash of what it shows, by which a
test tells that the page or the table has changed since.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import sync_playwright

from monitorbench.report.drawing import COLOURS

ROOT = Path(__file__).resolve().parents[2]
PICTURE = Path(__file__).with_name("report.png")
STUDY = Path(__file__).with_name("study.png")
KEY = "shows"
"""Name of the hash among the texts of the file."""
COMMAND = ("choose", "experiment=judges", "tracking=none")
_SIZE = {"width": 1180, "height": 1060}
_READOUTS = {"prompted": "o", "+ linear probe": "^", "+ MLP probe": "D"}


def shows(page: str) -> str:
    """Hash what a person sees on the first screen: its words and numbers, and the style sheet."""
    section = page.partition("<h1>")[2].partition("<h2>")[0]
    words = re.sub(r"<svg.*?</svg>|<[^>]*>|\s+", " ", section, flags=re.DOTALL).split()
    style = page.partition("<style>")[2].partition("</style>")[0]
    return hashlib.sha256(" ".join([*words, style]).encode()).hexdigest()


def draw(page: Path, picture: Path) -> None:
    """Write the picture of a page."""
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport=_SIZE)
        tab.goto(page.as_uri())
        shot = Path(folder) / "shot.png"
        tab.screenshot(path=shot)
        browser.close()
        texts = PngInfo()
        texts.add_text(KEY, shows(page.read_text(encoding="utf-8")))
        Image.open(shot).convert("RGB").save(picture, optimize=True, pnginfo=texts)


class StudyTable(NamedTuple):
    """The table of docs/study.md: AUROCs in each column, by model and readout, and the rules'."""

    columns: list[str]
    monitors: dict[tuple[str, str], list[float]]
    rules: list[list[float]]

    @property
    def shows(self) -> str:
        """A hash of the numbers and their names."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


def study_table() -> StudyTable:
    """Read the table of docs/study.md; a row with a plus is of the model named last."""
    text = (ROOT / "docs" / "study.md").read_text(encoding="utf-8").partition("## AUROC by cell")[2]
    lines = text.partition("\n\nBold:")[0].splitlines()
    header, _, *rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    table, model = StudyTable(header[1:], {}, []), ""
    for name, *cells in rows:
        aurocs = [float(cell.strip("*").split()[0].strip("*")) for cell in cells]
        if name.endswith(", base") or ", + " in name:
            model, _, name = name.partition(", ")
            name = "prompted" if name == "base" else name
        if name == "prompted" or name.startswith("+"):
            table.monitors[model, name.partition(",")[0]] = aurocs
        else:
            table.rules.append(aurocs)
    return table


def draw_study(picture: Path) -> None:
    """Draw each cell's AUROCs by model and readout, over what rules that don't read reach there."""
    table = study_table()
    figure = Figure(figsize=(9, 4.2), dpi=130, layout="constrained")
    axes, places = figure.subplots(), range(len(table.columns))
    reached = [max(0.5, *column) - 0.5 for column in zip(*table.rules, strict=True)]
    axes.bar(places, reached, 0.84, 0.5, color="#d5d9e0", label="reached by rules that don't read")
    models = list(dict.fromkeys(model for model, _ in table.monitors))
    for (model, readout), aurocs in table.monitors.items():
        if readout in _READOUTS:
            i, face = models.index(model), {"markerfacecolor": "none"} if readout == "prompted" else {}
            spots = [place + 0.26 * (i - 1) for place in places]
            label = f"{model}{' ' if face == {} else ', '}{readout}"
            axes.plot(spots, aurocs, _READOUTS[readout], color=COLOURS[i + 1], label=label, **face)
    axes.axhline(0.5, color="black", lw=0.8)
    axes.set_xticks(places, table.columns)
    axes.set(ylabel="AUROC", ylim=(0.3, 1), xlim=(-0.5, len(table.columns) - 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7.5, ncols=2, frameon=False, loc="upper left")
    figure.savefig(picture, metadata={KEY: table.shows})


if __name__ == "__main__":
    draw_study(STUDY)
    with tempfile.TemporaryDirectory() as folder:
        out = (f"paths.runs={folder}/runs", f"paths.data={folder}/data")
        command = [sys.executable, "-m", "monitorbench.cli", *COMMAND, *out]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        draw(Path(folder) / done.stdout.splitlines()[-1] / "report.html", PICTURE)
