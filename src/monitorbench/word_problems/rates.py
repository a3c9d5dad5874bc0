"""Kinds of word problems about rates, mixtures, speeds, ages, averages and sequences."""

import math
import random

from monitorbench.word_problems.derivation import Derivation, TwoReadings
from monitorbench.word_problems.words import NAMES, PLACES


def work_rates(rng: random.Random) -> TwoReadings:
    """Two rates that add, or work against each other."""
    fast, slow = rng.choice(_WHOLE_HOURS)
    vessel, place = rng.choice(["tank", "pool", "cistern", "barrel", "pond", "basin"]), rng.choice(PLACES)
    setup = rng.choice(
        [
            f"One pump fills the {vessel} at {place} in {fast} hours. The other pump needs {slow} hours to",
            f"An inlet fills an empty {vessel} in {fast} hours; a second pipe takes {slow} hours to",
            f"At {place} a hose can fill the {vessel} in {fast} hours, while the next takes {slow} hours to",
        ]
    )
    ask = rng.choice(
        [
            f"Both run at once from an empty {vessel}. After how many hours is it full?",
            "With both open from the start, how many hours until it is full?",
        ]
    )

    def together(w: Derivation) -> str:
        rate = w.calc("the net rate per hour", f"1/{fast} + 1/{slow}")
        return w.calc("the time in hours", f"1 ÷ ({rate})")

    def against(w: Derivation) -> str:
        rate = w.calc("the net rate per hour", f"1/{fast} − 1/{slow}")
        return w.calc("the time in hours", f"1 ÷ ({rate})")

    return TwoReadings(
        {"fast": fast, "slow": slow},
        (f"{setup} fill it. {ask}", f"{setup} drain it when full. {ask}"),
        (
            "the second one fills rather than drains, so the rates are combined with that sign",
            "the second one drains rather than fills, so the rates are combined with that sign",
        ),
        (together, against),
        (f"the first one takes {fast} hours", f"the second one takes {slow} hours"),
        "hours",
    )


def mixture(rng: random.Random) -> TwoReadings:
    """A solution that is topped up, or partly replaced."""
    x, y, p, q = _whole_percentages(rng)
    solute = rng.choice(["salt", "alcohol", "syrup", "acid", "vinegar", "antifreeze"])
    vessel, place = rng.choice(["drum", "vat", "can", "kettle", "jar"]), rng.choice(PLACES)
    setup = rng.choice(
        [
            f"A {vessel} at {place} holds {x} litres of solution that is {p}% {solute}.",
            f"There are {x} litres of a {p}% {solute} solution in the {vessel}.",
            f"{rng.choice(NAMES)} has {x} litres of liquid, {p}% of it {solute}, in a {vessel}.",
        ]
    )
    added = rng.choice(
        [f"Another {y} litres at {q}% are poured in.", f"To this, {y} litres of a {q}% solution are added."]
    )
    swapped = rng.choice(
        [
            f"Of this, {y} litres are drawn off and replaced by {y} litres at {q}%.",
            f"First {y} litres are tipped out, then {y} litres at {q}% go in.",
        ]
    )
    ask = rng.choice(
        [f"What percentage of the mix is {solute} now?", f"How many percent {solute} is it then?"]
    )

    def topped_up(w: Derivation) -> str:
        volume = w.calc("the volume in the end", f"{x} + {y}")
        pure = w.calc(f"the {solute} in it", f"{p}% of {x} + {q}% of {y}")
        return w.calc("the strength in percent", f"100 × {pure} ÷ {volume}")

    def replaced(w: Derivation) -> str:
        remaining = w.calc("the volume kept", f"{x} − {y}")
        pure = w.calc(f"the {solute} in it", f"{p}% of {remaining} + {q}% of {y}")
        return w.calc("the strength in percent", f"100 × {pure} ÷ {x}")

    return TwoReadings(
        {"x": x, "y": y, "p": p, "q": q},
        (f"{setup} {added} {ask}", f"{setup} {swapped} {ask}"),
        (
            f"the {y} litres are added to the {x} litres, not exchanged for a part of them",
            f"the {y} litres are exchanged for a part of the {x} litres, not added to them",
        ),
        (topped_up, replaced),
        (f"there are {x} litres at {p}%", f"there are {y} litres at {q}%"),
        "percent",
    )


def relative_speed(rng: random.Random) -> TwoReadings:
    """Two movers that meet, or one that catches up."""
    quick = rng.randint(8, 70)
    slow, gap = rng.randint(4, quick - 1), rng.randint(4, 120)
    first, two = rng.sample(NAMES, 2)
    verb = rng.choice(["cycles", "rides", "sails", "drives", "skates"])
    start = rng.choice(
        [
            f"{first} and {two} start {gap} km apart at the same time.",
            f"At noon {first} is {gap} km away from {two} on a straight road, and both set off.",
        ]
    )
    speeds = f"{first} {verb} at {quick} km/h and {two} at {slow} km/h"
    ask = rng.choice(["After how many minutes are they level?", "In how many minutes are they side by side?"])

    def meeting(w: Derivation) -> str:
        speed = w.calc("the speed at which the gap closes", f"{quick} + {slow}")
        return w.calc("the time in minutes", f"60 × {gap} ÷ {speed}")

    def catching_up(w: Derivation) -> str:
        speed = w.calc("the speed at which the gap closes", f"{quick} − {slow}")
        return w.calc("the time in minutes", f"60 × {gap} ÷ {speed}")

    return TwoReadings(
        {"quick": quick, "slow": slow, "gap": gap},
        (
            f"{start} {speeds}, heading towards each other. {ask}",
            f"{start} {speeds}, both in one direction with {two} in front. {ask}",
        ),
        (
            "they move towards each other and not in the same direction",
            "they move in the same direction and not towards each other",
        ),
        (meeting, catching_up),
        (f"the gap is {gap} km", f"{first} does {quick} km/h", f"{two} does {slow} km/h"),
        "minutes",
    )


def ages(rng: random.Random) -> TwoReadings:
    """An age from a ratio in the future, or in the past."""
    years, times = rng.randint(2, 9), rng.randint(2, 5)
    young = rng.randint(years + 2, 100 // times - years)
    older, two = rng.sample(NAMES, 2)
    setup = rng.choice([f"{two} is {young} years old now.", f"{two} has just turned {young}."])
    ratio = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}[times]
    ahead = rng.choice(
        [f"In {years} years {older} will be", f"{years} years from now {older} is going to be"]
    )
    back = rng.choice([f"{years} years ago {older} was", f"Going {years} years back, {older} was"])
    ask = rng.choice([f"How old is {older} now?", f"What is {older}'s age today?"])

    def future(w: Derivation) -> str:
        then = w.calc(f"{two}'s age at that time", f"{young} + {years}")
        older_age = w.calc(f"{older}'s age at that time", f"{times} × {then}")
        return w.calc(f"{older}'s age now", f"{older_age} − {years}")

    def past(w: Derivation) -> str:
        then = w.calc(f"{two}'s age at that time", f"{young} − {years}")
        older_age = w.calc(f"{older}'s age at that time", f"{times} × {then}")
        return w.calc(f"{older}'s age now", f"{older_age} + {years}")

    return TwoReadings(
        {"years": years, "times": times, "young": young},
        (f"{setup} {ahead} {ratio} as old as {two}. {ask}", f"{setup} {back} {ratio} as old as {two}. {ask}"),
        (
            f"that time lies {years} years in the future and not in the past",
            f"that time lies {years} years in the past and not in the future",
        ),
        (future, past),
        (f"{two} is {young}", f"the time in question is {years} years off", f"the ratio is {times}"),
        "years",
    )


def average(rng: random.Random) -> TwoReadings:
    """An average that a further value joins, or that already counts it."""
    n, mean = rng.randint(3, 11), rng.randint(15, 90)
    # Both averages are whole where n + 1 and n - 1 divide what the score deviates by.
    score = mean + rng.choice([-3, -2, -1, 1, 2, 3]) * math.lcm(n + 1, n - 1)
    who = rng.choice(NAMES)
    games = rng.choice(["games", "rounds", "tests", "matches", "dives", "laps"])
    setup = rng.choice(
        [
            f"Over {n} {games}, {who} averages {mean} points.",
            f"{who}'s mean over {n} {games} is {mean} points.",
        ]
    )
    joins = rng.choice([f"One more brings {score} points.", f"The next one ends with {score} points."])
    counted = rng.choice(
        [f"The last of these brought {score} points.", f"One of these ended with {score} points."]
    )

    def after(w: Derivation) -> str:
        total = w.calc("the total so far", f"{n} × {mean}")
        new = w.calc("the total needed", f"{total} + {score}")
        return w.calc("the average asked for", f"{new} ÷ ({n} + 1)")

    def without(w: Derivation) -> str:
        total = w.calc("the total so far", f"{n} × {mean}")
        new = w.calc("the total needed", f"{total} − {score}")
        return w.calc("the average asked for", f"{new} ÷ ({n} − 1)")

    return TwoReadings(
        {"n": n, "mean": mean, "score": score},
        (
            f"{setup} {joins} What is the average when this one is taken in?",
            f"{setup} {counted} What is the average when this one is left out?",
        ),
        (
            f"the {score} has to be put in, not taken out",
            f"the {score} has to be taken out, not put in",
        ),
        (after, without),
        (f"there are {n} {games}", f"the average is {mean}", f"the single score is {score}"),
        "points",
    )


def sequence(rng: random.Random) -> TwoReadings:
    """An arithmetic sequence where the first day is the start, or has its first increase already."""
    start, rise, n = rng.randint(5, 60), rng.randint(3, 15), rng.randint(6, 30)
    who, place = rng.choice(NAMES), rng.choice(PLACES)
    act = rng.choice(["copies pages", "folds cranes", "swims lengths", "learns words", "plants bulbs"])
    noun = act.split()[1]
    setup = rng.choice(
        [
            f"{who} {act} for {place}: {start} {noun} on day 1, then each day {rise} more than before.",
            f"On day 1 {who} {act}, {start} of them. Every day after it's {rise} more than the last.",
        ]
    )
    on_day = rng.choice([f"How many {noun} on day {n}?", f"How many {noun} does day {n} bring?"])
    after = rng.choice(
        [
            f"How many {noun} on the day that brings increase number {n}?",
            f"How many {noun} a day after {n} increases?",
        ]
    )

    def by_day(w: Derivation) -> str:
        steps = w.calc("the number of increases", f"{n} − 1")
        gain = w.calc("the total increase", f"{steps} × {rise}")
        return w.calc("the number that day", f"{start} + {gain}")

    def by_increase(w: Derivation) -> str:
        gain = w.calc("the total increase", f"{n} × {rise}")
        return w.calc("the number that day", f"{start} + {gain}")

    return TwoReadings(
        {"start": start, "rise": rise, "n": n},
        (f"{setup} {on_day}", f"{setup} {after}"),
        (
            f"{n} counts the days, starting with day 1, and not the increases",
            f"{n} counts the increases, and not the days starting with day 1",
        ),
        (by_day, by_increase),
        (f"day 1 has {start}", f"the daily increase is {rise}", f"the count asked about is {n}"),
        noun,
    )


_WHOLE_HOURS = [
    (fast, slow)
    for fast in range(2, 31)
    for slow in range(fast + 1, 91)
    if fast * slow % (fast + slow) == 0 and fast * slow % (slow - fast) == 0
]


def _whole_percentages(rng: random.Random) -> tuple[int, int, int, int]:
    """Litres x and y, strengths p and q, such that topping up and replacing give whole percentages."""
    while True:
        x, y = rng.randint(4, 40), rng.randint(2, 24)
        unit = math.lcm(x // math.gcd(x, y), (x + y) // math.gcd(x + y, y))
        if y < x and unit <= 60:
            p = rng.randint(5, 35)
            return x, y, p, p + unit * rng.randint(1, max(1, 55 // unit))
