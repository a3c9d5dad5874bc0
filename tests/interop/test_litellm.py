"""The shapes of the LiteLLM proxy's calls and of what it is answered."""

from typing import Any

import pytest

from monitorbench.interop import litellm
from monitorbench.records import Role

ASKED = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Look:"}]
CALL = {
    "input_type": "response",
    "texts": ["Sure."],
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
    "structured_messages": None,
    "images": None,
    "tools": None,
    "request_data": {"user_api_key_hash": "h"},
    "request_headers": {"User-Agent": "[present]"},
    "litellm_version": "1.90.0",
    "litellm_call_id": "call-1",
    "litellm_trace_id": "trace-1",
    "additional_provider_specific_params": {},
}
"""As the proxy sends it."""


def test_an_answer_is_judged_with_the_request_of_its_call():
    """If it failed: the monitor would judge answers without what was asked, for which it has no threshold."""
    requests = litellm.Requests()
    asked = {
        **CALL,
        "input_type": "request",
        "texts": ["Look:"],
        "tool_calls": None,
        "structured_messages": ASKED,
    }
    requests.remember(litellm.call_in(asked))
    found = requests.exchange(litellm.call_in(CALL))
    assert found is not None
    assert [one.content for one in found.request] == ["Be brief.", "Look:"]
    (said,) = found.response
    assert (said.role, said.content, said.tool_calls[0].name) == (Role.ASSISTANT, "Sure.", "read")
    assert requests.exchange(litellm.call_in({**CALL, "litellm_call_id": "other"})) is None


TEXT = "x" * 30 * litellm._OVERHEAD
CALLING = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": TEXT}}]}
EMPTY = {"role": "user", "content": ""}


@pytest.mark.parametrize(
    "what", [{"texts": [TEXT]}, {"structured_messages": [CALLING]}, {"structured_messages": [EMPTY] * 30}]
)
def test_remembered_requests_take_bounded_memory(what: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    """If it failed: a long life of the server would end in memory's."""
    monkeypatch.setattr(litellm, "_MOST_CHARACTERS", 100 * litellm._OVERHEAD)
    requests = litellm.Requests()
    for n in range(9):
        call = {"input_type": "request", "litellm_call_id": f"{n}", **what}
        requests.remember(litellm.call_in(call))
    known = [n for n in range(9) if requests.exchange(litellm.call_in({**CALL, "litellm_call_id": f"{n}"}))]
    assert known == [6, 7, 8]


def test_the_proxys_answer_has_its_words():
    """If it failed: the proxy would let pass what is flagged, as an action that it doesn't know."""
    assert litellm.answer("flag", "why") == {"action": "BLOCKED", "blocked_reason": "why"}
    assert litellm.answer("pass", "") == {"action": "NONE"}
