"""Kinds of word problems about order, truth-tellers and who meets whom."""

import itertools
import random

from monitorbench.word_problems.derivation import Derivation, TwoReadings
from monitorbench.word_problems.words import NAMES, PLACES


def meetings(rng: random.Random) -> TwoReadings:
    """Pairs counted once, or in both directions."""
    n, extra = rng.randint(5, 40), rng.randint(2, 30)
    people, place = (
        rng.choice(["guests", "delegates", "players", "neighbours", "volunteers"]),
        rng.choice(PLACES),
    )
    setup = rng.choice([f"{n} {people} come to {place}.", f"At {place} there are {n} {people}."])
    unordered = rng.choice(
        ["Each two of them shake hands exactly once", "Every two of them play one game against each other"]
    )
    ordered = rng.choice(
        [
            "Each of them writes one card to every other one",
            "Every one of them sends each of the others a photo",
        ]
    )
    more = rng.choice([f"and {extra} are done again later.", f"and {extra} are repeated the next day."])
    ask = rng.choice(["How many is that altogether?", "How many are there in total?"])

    def once(w: Derivation) -> str:
        ends = w.calc("the number of ordered pairs", f"{n} × ({n} − 1)")
        number = w.calc("the number on the first day", f"{ends} ÷ 2")
        return w.calc("the total number", f"{number} + {extra}")

    def both_ways(w: Derivation) -> str:
        number = w.calc("the number on the first day", f"{n} × ({n} − 1)")
        return w.calc("the total number", f"{number} + {extra}")

    return TwoReadings(
        {"n": n, "extra": extra},
        (f"{setup} {unordered}, {more} {ask}", f"{setup} {ordered}, {more} {ask}"),
        (
            "each two people make one pair here, not two",
            "each two people make two pairs here, not one",
        ),
        (once, both_ways),
        (f"there are {n} {people}", f"{extra} come on top"),
    )


def ranking(rng: random.Random) -> TwoReadings:
    """An order of four from three comparisons, asked for from either end."""
    people = rng.sample(NAMES, 4)
    ahead, front, back = rng.choice(
        [
            ("finished before", "fastest one", "slowest one"),
            ("is taller than", "tallest one", "shortest one"),
            ("is older than", "oldest one", "youngest one"),
            ("scored more than", "best one", "weakest one"),
            ("sits left of", "leftmost one", "rightmost one"),
        ]
    )
    clues = [f"{first} {ahead} {second}." for first, second in itertools.pairwise(people)]
    shuffled = rng.sample(clues, 3)
    scene = rng.choice(PLACES)
    opening = rng.choice(
        [f"Four friends from {scene} are compared.", f"Four people at {scene} are put in order."]
    )

    def question(end: str) -> str:
        return f"{opening} {' '.join(shuffled)} Who comes second, counting the {end} as number one?"

    def from_front(w: Derivation) -> str:
        w.say(f"{shuffled[0].rstrip('.')}, and the other two links make one chain of it", "")
        w.say(f"the order is {', '.join(people)}", "")
        return w.say(f"the second place goes to {people[1]}", people[1])

    def from_back(w: Derivation) -> str:
        w.say(f"{shuffled[0].rstrip('.')}, and the other two links make one chain of it", "")
        w.say(f"the order is {', '.join(reversed(people))}", "")
        return w.say(f"the second place goes to {people[2]}", people[2])

    return TwoReadings(
        {},
        (question(front), question(back)),
        (
            f"number one is the {front} and not the {back}",
            f"number one is the {back} and not the {front}",
        ),
        (from_front, from_back),
        tuple(clue.rstrip(".") for clue in shuffled[1:]),
    )


def truth_tellers(rng: random.Random) -> TwoReadings:
    """Three statements about a culprit, of which exactly one, or exactly two, are true."""
    while True:
        people = rng.sample(NAMES, 3)
        claims = [(person, rng.choice(people), rng.random() < 0.5) for person in people]
        truths = {
            suspect: sum((accused == suspect) == accuses for _, accused, accuses in claims)
            for suspect in people
        }
        if sorted(truths.values()).count(1) == 1 and sorted(truths.values()).count(2) == 1:
            break
    deed = rng.choice(list(_BASE))
    statements = [
        f"{person} says that {accused} {deed if accuses else 'did not ' + _BASE[deed]}."
        for person, accused, accuses in claims
    ]
    opening = rng.choice(
        [f"One of three people at {rng.choice(PLACES)} {deed}.", f"Someone {deed}: one of three."]
    )
    by_count = {count: suspect for suspect, count in truths.items()}

    def question(count: int) -> str:
        condition = f"Exactly {_WORD[count]} of these statements {_IS[count]} true."
        return f"{opening} {' '.join(statements)} {condition} Who was it?"

    def find(w: Derivation, count: int) -> str:
        for suspect in people:
            w.say(f"had it been {suspect}, the number of true statements would be {truths[suspect]}", "")
        culprit = by_count[count]
        return w.say(f"the count wanted is found with {culprit}", culprit)

    return TwoReadings(
        {},
        (question(1), question(2)),
        (
            "the number of true statements has to be one and not two",
            "the number of true statements has to be two and not one",
        ),
        (lambda w: find(w, 1), lambda w: find(w, 2)),
        tuple(s.rstrip(".") for s in statements[:2]),
    )


_BASE = {
    "ate the cake": "eat the cake",
    "broke the vase": "break the vase",
    "hid the key": "hide the key",
    "sent the letter": "send the letter",
}
_WORD = {1: "one", 2: "two"}
_IS = {1: "is", 2: "are"}
