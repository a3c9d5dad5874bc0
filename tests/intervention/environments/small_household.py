"""A household game of four rooms in a row, for tests that need no archive: see the attic, from the cellar.

`climb` leads up a room. Gems may be looked at. Where there is more than one they have to be, in any order:
the planner searches blindly, so that it goes through some 2**gems states.
"""

import json
from collections.abc import Sequence
from itertools import pairwise

_DOMAIN = """(define (domain rooms)
 (:requirements :typing)
 (:types room gem)
 (:predicates (at ?r - room) (above ?r - room ?s - room) (present ?g - gem) (seen ?g - gem))
 (:action climb
  :parameters (?r - room ?s - room)
  :precondition (and (at ?r) (above ?s ?r))
  :effect (and (at ?s) (not (at ?r))))
 (:action look
  :parameters (?g - gem)
  :precondition (present ?g)
  :effect (seen ?g))
)"""

_GRAMMAR = '''grammar :: """
{
 "intro": [{"rhs": "Welcome.\\n\\n#task#"}],
 "task": [{"rhs": "Your task is to: see the attic."}],
 "climb.feedback": [{"rhs": "You climb to the {s.name}."}],
 "look.feedback": [{"rhs": "You look at the {g.name}."}]
}
""";
action climb { template :: "climb from {r} to {s}"; feedback :: "#climb.feedback#"; }
action look { template :: "look at {g}"; feedback :: "#look.feedback#"; }
'''
ROOMS = ("cellar", "kitchen", "bedroom", "attic")
WALKTHROUGH = tuple(f"climb from {low} to {high}" for low, high in pairwise(ROOMS))


def small_household(gems: int = 1, walkthrough: Sequence[str] = ()) -> str:
    """The JSON text of the game's file."""
    names = [f"gem{number}" for number in range(gems)]
    facts = [f"(above {high} {low})" for low, high in pairwise(ROOMS)]
    facts += [f"(present {name})" for name in names]
    goal = ["(at attic)", *(f"(seen {name})" for name in names if gems > 1)]
    problem = (
        "(define (problem house) (:domain rooms) "
        f"(:objects {' '.join(ROOMS)} - room {' '.join(names)} - gem) "
        f"(:init (at cellar) {' '.join(facts)}) (:goal (and {' '.join(goal)})))"
    )
    game = {
        "pddl_domain": _DOMAIN,
        "grammar": _GRAMMAR,
        "pddl_problem": problem,
        "walkthrough": list(walkthrough),
    }
    return json.dumps(game)
