"""TextWorld's engine for ALFWorld, compiled once, with states to come back to, in a process of its own.

TextWorld compiles a game's PDDL anew at every reset, a second each time. The planner's library behind it
numbers every state that it has met and can be set to one of them again; with the parts of TextWorld's own
state that an action changes, that is an exact snapshot and a quick reset. A process takes one engine, and
keeps it to its end (see `household`), which starts this module with `python -m`. Over its pipes goes one line
of JSON for each question: `[name, *arguments]`; the answer is `{"value": …}`, or `{"error": …}` with what
Python raised. The process ends with its stdin.
"""

import hashlib
import json
import os
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import fast_downward
from textworld import EnvInfos
from textworld.core import GameState
from textworld.envs.pddl.logic import Atom
from textworld.envs.pddl.pddl import PddlEnv

_LONGEST_DETOUR = 2
"""Actions, on the way back to a known way: that covers most of what goes astray, within seconds."""


class Mark(NamedTuple):
    """A state of the engine, valid for the engine that made it."""

    planner_state: int
    facts: dict[Any, set[Any]]
    vars_by_name: dict[str, Any]
    vars_by_type: dict[str, set[Any]]
    var_counts: Counter[str]
    operators: dict[int, Any]
    """The actions that are possible here, by their number."""
    game_state: Any
    """Text and admissible commands, as TextWorld gathered them."""


class HouseholdEngine(PddlEnv):
    """One game, at its start after `begin`."""

    def __init__(self, game: Mapping[str, Any]) -> None:
        """Compile a game: the content of a `game.tw-pddl`."""
        super().__init__(EnvInfos(admissible_commands=True))
        self.load(game)
        self.names = household_names(self._entity_infos)
        for id_, name in self.names.items():
            self._entity_infos[id_].name = name
        self._pddl_state.all_applicable_actions()
        self._marks: list[Mark] = []
        self.mark()
        self._seen_operators: dict[int, dict[str, int]] = {}

    def begin(self) -> list[Any]:
        """Go to the start; returns what is observed."""
        self.return_to(0)
        self.state, self.prev_state = GameState(), None
        self._last_action, self._moves = None, 0
        context = {
            "state": self._pddl_state,
            "facts": list(self._pddl_state.facts),
            "variables": {},
            "mapping": {},
            "entity_infos": self._entity_infos,
        }
        self.state.feedback = self.state.raw = self._logic.grammar.derive("#intro#", context)
        self._gather_infos()
        return _observed(self.state)

    def take(self, action: str) -> list[Any]:
        """Take an action; returns what is observed."""
        return _observed(self.step(action)[0])

    def mark(self) -> int:
        """Note the current state; returns the number of its mark."""
        state = self._pddl_state
        self._marks.append(
            Mark(
                int(self.downward_lib.get_state_id()),
                {signature: set(facts) for signature, facts in state._facts.items()},
                dict(state._vars_by_name),
                {type_: set(names) for type_, names in state._vars_by_type.items()},
                Counter(state._var_counts),
                state._operators,
                self.state,
            )
        )
        return len(self._marks) - 1

    def return_to(self, number: int) -> None:
        """Go back to the state of a mark."""
        mark = self._marks[number]
        self.downward_lib.set_state_id(mark.planner_state)
        state = self._pddl_state
        state._facts = defaultdict(set, {name: set(facts) for name, facts in mark.facts.items()})
        state._vars_by_name = dict(mark.vars_by_name)
        state._vars_by_type = defaultdict(set, {name: set(v) for name, v in mark.vars_by_type.items()})
        state._var_counts = Counter(mark.var_counts)
        state._operators = mark.operators
        self.state = mark.game_state

    def fingerprint(self) -> str:
        """A hash of what is true, to the planner and to TextWorld."""
        atoms = (Atom * self.downward_lib.get_state_size())()
        self.downward_lib.get_state(atoms)
        lines = [*sorted(atom.name for atom in atoms), "", *sorted(map(str, self._pddl_state.facts))]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def plan(self, seconds: float, known: Sequence[str]) -> tuple[str, ...]:
        """Commands to the goal from here; () where the planner finds none.

        The planner searches blindly, for up to a minute of CPU time. It isn't asked where a short detour
        leads back to `known`, commands that lead to the goal from the start. This process dies of SIGPROF
        where that takes more than `seconds` of CPU time.
        """
        here = int(self.downward_lib.get_state_id())
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            try:
                detour = self._way_back(here, known)
            finally:
                self.downward_lib.set_state_id(here)
                self._seen_operators.clear()
            return detour or tuple(self._pddl_state.replan(self._entity_infos))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _way_back(self, here: int, known: Sequence[str]) -> tuple[str, ...]:
        """The shortest detour from which some last part of `known` wins, and that part; () without one."""
        level: dict[int, tuple[str, ...]] = {here: ()}
        seen = {here}
        for length in range(_LONGEST_DETOUR + 1 if known else 0):
            following: dict[int, tuple[str, ...]] = {}
            for state, detour in level.items():
                operators = self._operators(state)
                for first in reversed(range(len(known))):
                    if known[first] in operators and (ending := self._winning(state, known[first:])):
                        return (*detour, *ending)
                for command in sorted(operators) if length < _LONGEST_DETOUR else ():
                    after = self._after(state, operators[command])
                    if after not in seen:
                        seen.add(after)
                        following[after] = (*detour, command)
            level = following
        return ()

    def _operators(self, state: int) -> dict[str, int]:
        """The planner's operators that apply in one of its states, by command."""
        if (seen := self._seen_operators.get(state)) is not None:
            return seen
        self.downward_lib.set_state_id(state)
        operators = (fast_downward.Operator * self.downward_lib.get_applicable_operators_count())()
        self.downward_lib.get_applicable_operators(operators)
        by_command = {self._command(operator.name): operator.id for operator in operators}
        self._seen_operators[state] = by_command
        return by_command

    def _command(self, operator: str) -> str:
        """Write a command of a plan as TextWorld does; it fails where an action has parameters of its own."""
        name, *entities = operator.split()
        parameters = [parameter.name.strip("?") for parameter in self._pddl_state._actions[name].parameters]
        # The other templates are names in braces; this one asks where a place is.
        template = "go to {r}" if name == "gotolocation" else self._logic.actions[name].template
        names = (self._entity_infos[entity].name for entity in entities)
        return str(template.format(**dict(zip(parameters, names, strict=False))))

    def _after(self, state: int, operator: int) -> int:
        self.downward_lib.set_state_id(state)
        self.downward_lib.apply_operator(operator, None)
        return int(self.downward_lib.get_state_id())

    def _winning(self, state: int, commands: Sequence[str]) -> tuple[str, ...]:
        """The commands up to the first that wins; () where none does, or one can't be taken."""
        for number, command in enumerate(commands, start=1):
            operator = self._operators(state).get(command)
            if operator is None:
                break
            state = self._after(state, operator)
            if self.downward_lib.check_goal():
                return tuple(commands[:number])
        return ()


def household_names(ids: Iterable[str]) -> dict[str, str]:
    """Names such as `desk 1` for ids such as `desk_bar__plus_02_dot_32_bar_…`, as the walkthroughs have them.

    The things of one kind are numbered from the last id to the first, in alphabetical order.
    """
    seen: Counter[str] = Counter()
    names = {}
    for id_ in sorted(ids, reverse=True):
        kind, separator, _ = id_.partition("_bar_")
        if not separator:
            names[id_] = id_
            continue
        # A sink's and a bathtub's basin carry their word at the end.
        kind += "basin" * ("basin" in id_)
        seen[kind] += 1
        names[id_] = f"{kind} {seen[kind]}"
    return names


def main() -> None:
    """Answer until stdin ends."""
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answers:
        # What the planner prints must not pass for an answer.
        os.dup2(2, 1)
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            answer: dict[str, Any]
            try:
                if name == "open":
                    engine = HouseholdEngine(json.loads(*arguments))
                    answer = {"value": engine.names}
                else:
                    answer = {"value": getattr(engine, name)(*arguments)}
            except Exception as error:  # whatever it is: the owner makes it a run's reason
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)


def _observed(state: Any) -> list[Any]:
    """Return the feedback, the admissible commands, and whether the game is won."""
    return [state["feedback"].strip(), list(state["admissible_commands"]), bool(state["won"])]


if __name__ == "__main__":
    main()
