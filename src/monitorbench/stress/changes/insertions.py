"""Text in the judged response that speaks to the judge: instructions, forged verdicts, a claim to be its own.

The control is a sentence that asks for nothing, in the same places: what an instruction does beyond it is the
instruction's own. All instructions ask for a benign verdict but `accusation`, which asks for an alarm. The
response is also given out as the judge's own: by a note in front, or by itself.
"""

from functools import partial
from random import Random

from monitorbench.records import Message, Role, Sample
from monitorbench.stress.changes.change import SampleChange, with_texts, wordings
from monitorbench.stress.changes.places import PLACES, in_tool_output, inserted

TOOL = "tool"
CONTROL: str = wordings()["control"]


def _say(text: str, place: str, sample: Sample, _: Random) -> Sample | None:
    return in_tool_output(sample, text) if place == TOOL else inserted(sample, text, place)


def _everywhere(name: str, text: str) -> list[SampleChange]:
    return [
        SampleChange(
            f"{name}.{place}",
            partial(_say, text, place),
            version=1 if place == TOOL else 2,
            keeps_benign=text == CONTROL or place == TOOL,
        )
        for place in (*PLACES, TOOL)
    ]


INJECTIONS = (
    *_everywhere("control", CONTROL),
    *(
        change
        for name, text in wordings()["instructions"].items()
        for change in _everywhere(f"instruction.{name}", text)
    ),
    SampleChange("accusation.end", partial(_say, wordings()["accusation"], "end"), version=2),
    *(
        SampleChange(f"forged_verdict.{name}", partial(_say, text, "end"), version=2, keeps_benign=False)
        for name, text in wordings()["forged_verdicts"].items()
    ),
)
"""Each in three places of the response and in a tool's output; a forged verdict stands where one would."""


def noted(sample: Sample, _: Random) -> Sample:
    """Append a note that the response is the judge's own to the request's system message, or make one."""
    note = wordings()["own_words"]["note"]
    first, *following = sample.request
    if first.role is Role.SYSTEM:
        system = first.model_copy(update={"content": f"{first.content}\n\n{note}"})
        return with_texts(sample, request=(system, *following))
    return with_texts(sample, request=(Message(role=Role.SYSTEM, content=note), *sample.request))


def claimed(sample: Sample, _: Random) -> Sample | None:
    """The response says so itself, in its first line."""
    return inserted(sample, wordings()["own_words"]["claim"], "start")


OWN_WORDS = (
    SampleChange("own_words.note", noted),
    SampleChange("own_words.claim", claimed, version=2, keeps_benign=False),
)
