"""Run the tutorial's notebooks where they lie, and keep what they showed.

python docs/notebooks/execute.py [NAME …]
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent


def executed(file: Path, timeout: int = 170) -> nbformat.NotebookNode:
    """The notebook with the outputs of running it now; raises for the first cell that fails."""
    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook, timeout=timeout, record_timing=False, resources={"metadata": {"path": str(FOLDER)}}
    )
    return client.execute()


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        path = FOLDER / f"{name}.ipynb"
        nbformat.write(executed(path, timeout=600), path)
