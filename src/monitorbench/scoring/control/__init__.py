"""The stage `control`: evaluation runs of calibration and test in, `control.json`, a table and a page out."""
