"""Draw the picture of README.md and docs/index.md: the first screen of the page that README's command writes.

python docs/images/draw.py
python docs/images/draw.py FOLDER

With a folder of published judges' scores, the picture of docs/real-judges.md, by that page's first command.
Takes seconds; wants Chromium (`make system-deps`). A picture holds a hash of what it shows, by which a test
tells that the page has changed since.
"""

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PICTURE = Path(__file__).with_name("report.png")
JUDGES = Path(__file__).with_name("judges.png")
KEY = "shows"
"""Name of the hash among the texts of the file."""
COMMAND = (
    "choose",
    "dataset=jsonl",
    f"dataset.path={ROOT / 'examples' / 'dataset.jsonl'}",
    "calibrate.alpha=0.1",
    f"monitors=[{ROOT / 'examples' / 'verdicts-smollm2_135m.jsonl'},"
    f"{ROOT / 'examples' / 'verdicts-qwen2_5_coder_0_5b.jsonl'}]",
    "tracking=none",
)
_SIZE = {"width": 1180, "height": 1060}


def shows(page: str) -> str:
    """Hash what a person sees on the first screen: its words and numbers, and the style sheet."""
    section = page.partition("<h1>")[2].partition("<h2>")[0]
    words = re.sub(r"<svg.*?</svg>|<[^>]*>|\s+", " ", section, flags=re.DOTALL).split()
    style = page.partition("<style>")[2].partition("</style>")[0]
    return hashlib.sha256(" ".join([*words, style]).encode()).hexdigest()


def of_judges(folder: Path) -> list[str]:
    """The first command of docs/real-judges.md, on a folder's files, which may be packed."""
    text = (ROOT / "docs" / "real-judges.md").read_text(encoding="utf-8")
    block = text.partition("```\nmonitorbench ")[2].partition("```")[0]
    packed = re.sub(r"\.jsonl\b", ".jsonl.gz", block) if list(folder.glob("*.gz")) else block
    return [*shlex.split(packed.replace("\\\n", " ")), "tracking=none"]


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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        judges = Path(sys.argv[1]).resolve() if sys.argv[1:] else None
        asked = of_judges(judges) if judges else COMMAND
        out = (f"paths.runs={folder}/runs", f"paths.data={folder}/data")
        command = [sys.executable, "-m", "monitorbench.cli", *asked, *out]
        done = subprocess.run(command, cwd=judges or folder, check=True, stdout=subprocess.PIPE, text=True)
        draw(Path(folder) / done.stdout.splitlines()[-1] / "report.html", JUDGES if judges else PICTURE)
