"""FireAct's agents: two policies on the same questions."""

import gzip

import pytest

from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import BASELINE
from monitorbench.intervention.recorded import archives

CHAT = [
    {"role": "user", "content": "Action: is no action here"},
    {"role": "assistant", "content": "Thought: look.\nAction: search[x]"},
    {"role": "user", "content": "Observation: y"},
    {"role": "assistant", "content": "Action: finish[y]"},
]
TEXT = "Action: of the prompt\n### Response:\nThought: known.\nAction: finish[y]\nObservation: right\n"


def _row(reward, traj=TEXT):
    return {"reward": reward, "em": reward, "f1": 1.0, "gt": "y", "pred": "y", "prompt": "", "traj": traj}


@pytest.fixture
def loaded(as_files, recorded):
    def load(small, large):
        files = as_files("fireact", ("run_llama-2-7b-d.json", small), ("run_llama-2-13b-d.json", large))
        return archives.load_policies(recorded("fireact"), files)

    return load


def test_policies_are_matched_by_question_and_their_actions_counted(loaded):
    """One agent's answer would be held against the other's on another question."""
    found = loaded({"1": _row(True), "2": _row(False, CHAT)}, {"2": _row(True), "3": _row(True)})
    assert [(one.task, one.condition, one.success, one.steps) for one in found] == [
        ("2", BASELINE, False, 2),
        ("2", "llama-2-13b", True, 1),
    ]
    assert {(one.agent, one.seed, one.interventions) for one in found} == {("fireact", 0, 0)}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"1": _row("yes")}, "question 1: .*neither true nor false"),
        ({"1": _row(True, None)}, "question 1: .*'traj' is neither"),
        ({"1": "text"}, "question 1: not an object"),
        ([], "not an object"),
        (b'{"1": {}, "1": {}}', "key '1' twice in one object"),
        (b"{", "no JSON"),
    ],
)
def test_a_broken_file_is_one_clear_line(loaded, content, what):
    """A question that is there twice would be answered by whichever comes last."""
    with pytest.raises(UserError, match=what):
        loaded({"1": _row(True)}, content)


def test_a_file_that_breaks_off_is_one_clear_line(as_files, recorded):
    """A half-copied mirror would end in a traceback."""
    packed = gzip.compress(b'{"1": {}}')
    files = as_files("fireact", ("a_llama-2-7b.json.gz", packed[:-6]), ("a_llama-2-13b.json", {}))
    with pytest.raises(UserError, match=r"broken \.gz file"):
        archives.load_policies(recorded("fireact"), files)


def test_a_policy_has_to_name_one_file(as_files, recorded):
    """Two agents' runs would be mixed."""
    files = as_files("fireact", ("a_llama-2-7b.json", {}), ("b_llama-2-13b.json", {}))
    with pytest.raises(UserError, match=r"2 files are named after the policy 'llama-2'"):
        archives.load_policies(recorded("fireact", treated="llama-2"), files)
