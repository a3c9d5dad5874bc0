"""An inverted scale is said where scores are read first."""

from pathlib import Path

import pytest
from studies import study

from monitorbench.interop.imports.stage import import_scores


@pytest.mark.parametrize(("scale", "is_said"), [("[1,10]", True), ("[10,1]", False)])
def test_an_inverted_scale_is_said_by_the_import(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, scale: str, is_said: bool
):
    """Otherwise: a rating of safety passes for one of suspicion, with an AUROC of .02, in silence."""
    file = tmp_path / "ratings.csv"
    rows = [f"{i},{'attack' if i % 2 else 'benign'},{2 + i % 3 if i % 2 else 7 + i % 3}" for i in range(60)]
    file.write_text("\n".join(["id,label,score", *rows]) + "\n")
    places = (f"paths.data={tmp_path / 'data'}", f"paths.runs={tmp_path / 'runs'}")
    with caplog.at_level("INFO"):
        import_scores(study(*places, f"from={file}", f"import.scale={scale}", primary="import"))
    assert ("The scores of score are inverted" in caplog.text) is is_said
