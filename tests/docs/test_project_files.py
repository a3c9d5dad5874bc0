"""What a forge reads (workflows, forms, the citation) says what the project is."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github").rglob("*.yml"))
WORKFLOWS = [form for form in FORMS if form.parent.name == "workflows"]
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))


def steps(workflow: Path) -> list[str]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_every_form_is_yaml(form):
    assert isinstance(yaml.safe_load(form.read_text()), dict)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.stem)
def test_what_a_workflow_runs_is_there(workflow):
    """A target or a file of tests that was renamed would be noticed by the next release alone."""
    asked = steps(workflow)
    assert asked
    for line in asked:
        if line.startswith("make "):
            assert line.split()[1] in TARGETS, line
        for test in re.findall(r"tests/\S+", line):
            assert (ROOT / test).exists(), line


def test_hosted_checks_are_those_of_a_landing():
    """`.ci/run` and the two workflows ask the same targets."""
    landing = set(re.findall(r"^make (\S+)", (ROOT / ".ci/run").read_text(), re.M))
    hosted = {line.split()[1] for form in WORKFLOWS for line in steps(form) if line.startswith("make ")}
    assert landing <= hosted


def test_versions_and_licence_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_who_reports_a_hole_is_sent_to_the_promises():
    assert "(docs/security.md)" in (ROOT / "SECURITY.md").read_text()
    assert "SECURITY.md" in (ROOT / "docs/security.md").read_text()
