"""Kinds of word problems about counting, remainders, calendars, overlaps, areas and lines."""

import random

from monitorbench.word_problems.derivation import Derivation, TwoReadings
from monitorbench.word_problems.words import GOODS, NAMES, PLACES, WEEKDAYS, plural_of


def weekday(rng: random.Random) -> TwoReadings:
    """A weekday some days after today, or with today counted as the first day."""
    n, start = rng.randint(16, 200), rng.randrange(7)
    who, event = rng.choice(NAMES), rng.choice(["exam", "concert", "launch", "wedding", "move", "audit"])
    setup = rng.choice(
        [
            f"Today is a {WEEKDAYS[start]} and {who} counts the days to the {event}.",
            f"{who} plans the {event} on a {WEEKDAYS[start]}.",
        ]
    )
    after = rng.choice([f"It takes place {n} days after that day.", f"From that day, {n} days have to pass."])
    numbered = rng.choice(
        [
            f"With that day counted as day 1, it is on day {n}.",
            f"That day is day 1, the {event} is on day {n}.",
        ]
    )
    ask = rng.choice(["Which weekday is that?", f"On which weekday is the {event}?"])

    def finish(w: Derivation, ahead: int) -> str:
        weeks = w.calc("the days in whole weeks", f"7 × {ahead // 7}")
        days_over = int(w.calc("the remainder", f"{ahead} − {weeks}"))
        day = WEEKDAYS[(start + days_over) % 7]
        return w.say(f"{days_over} days on from {WEEKDAYS[start]} comes {day}", day)

    def elapsed(w: Derivation) -> str:
        return finish(w, n)

    def inclusive(w: Derivation) -> str:
        return finish(w, int(w.calc("the number of days ahead", f"{n} − 1")))

    return TwoReadings(
        {"n": n, "start": start},
        (f"{setup} {after} {ask}", f"{setup} {numbered} {ask}"),
        (
            f"the {WEEKDAYS[start]} is day 0 and not day 1 of the count",
            f"the {WEEKDAYS[start]} is day 1 and not day 0 of the count",
        ),
        (elapsed, inclusive),
        (f"the count starts on a {WEEKDAYS[start]}", f"the count goes to {n}"),
    )


def remainder(rng: random.Random) -> TwoReadings:
    """Boxes that can be filled, or boxes that are needed."""
    size, count = rng.randint(6, 24), rng.randint(80, 600)
    items, place, who = plural_of(rng.choice(GOODS)), rng.choice(PLACES), rng.choice(NAMES)
    box = rng.choice(["box", "crate", "carton", "chest", "bin"])
    boxes = "boxes" if box == "box" else f"{box}s"
    setup = rng.choice(
        [
            f"{who} packs {count} {items} into {boxes} that hold {size} each.",
            f"{place.capitalize()} stores {count} {items}, {size} to a {box}.",
            f"A {box} takes {size} {items}, and {count} of them wait at {place}.",
        ]
    )
    over = rng.choice(
        ["How many are left over when no more full ones can be made?", "How many stay unpacked?"]
    )
    short = rng.choice(
        [f"How many more would fill the last {box} too?", f"How many are missing in the last {box}?"]
    )

    def left_over(w: Derivation) -> str:
        packed = w.calc(f"the content of the full {boxes}", f"{count // size} × {size}")
        return w.calc("the number asked for", f"{count} − {packed}")

    def missing(w: Derivation) -> str:
        packed = w.calc(f"the content with one {box} more", f"{count // size + 1} × {size}")
        return w.calc("the number asked for", f"{packed} − {count}")

    return TwoReadings(
        {"size": size, "count": count},
        (f"{setup} Only full {boxes} are closed. {over}", f"{setup} The last {box} is begun. {short}"),
        (
            f"wanted is the surplus beyond the full {boxes}, not the gap in the next {box}",
            f"wanted is the gap in the next {box}, not the surplus beyond the full {boxes}",
        ),
        (left_over, missing),
        (f"there are {count} {items}", f"a {box} holds {size}"),
    )


def overlap(rng: random.Random) -> TwoReadings:
    """Inclusion and exclusion: at least one of two, or exactly one."""
    both = rng.randint(3, 20)
    a, b = both + rng.randint(5, 50), both + rng.randint(5, 50)
    total, place = a + b - both + rng.randint(4, 40), rng.choice(PLACES)
    act, two = rng.sample(["tea", "chess", "judo", "Latin", "drums", "rowing", "yoga", "pottery"], 2)
    people = rng.choice(["members", "guests", "pupils", "visitors", "trainees"])
    setup = rng.choice(
        [
            f"Of {total} {people} at {place}, {a} chose {act}, {b} chose {two}, {both} chose both.",
            f"{place.capitalize()} asked {total} {people}: {a} like {act}, {b} like {two}, {both} like both.",
        ]
    )

    def at_least_one(w: Derivation) -> str:
        ticks = w.calc("the number of ticks", f"{a} + {b}")
        people_once = w.calc("the number that counts", f"{ticks} − {both}")
        return w.calc("the number of the others", f"{total} − {people_once}")

    def exactly_one(w: Derivation) -> str:
        ticks = w.calc("the number of ticks", f"{a} + {b}")
        people_once = w.calc("the number that counts", f"{ticks} − 2 × {both}")
        return w.calc("the number of the others", f"{total} − {people_once}")

    return TwoReadings(
        {"a": a, "b": b, "both": both, "total": total},
        (
            f"{setup} How many {people} have neither of them?",
            f"{setup} How many {people} do not have exactly one of them?",
        ),
        (
            f"the {both} with both are counted once, not left out altogether",
            f"the {both} with both are left out altogether, not counted once",
        ),
        (at_least_one, exactly_one),
        (f"there are {total} {people}", f"{a} have {act}", f"{b} have {two}", f"{both} have both"),
        people,
    )


def border(rng: random.Random) -> TwoReadings:
    """Square tiles in a border laid around a rectangle, or inside its edge."""
    length, width, strip = rng.randint(8, 30), rng.randint(7, 24), rng.randint(1, 3)
    site, who = rng.choice(["terrace", "lawn", "courtyard", "stage", "mosaic"]), rng.choice(NAMES)
    setup = rng.choice(
        [
            f"A {site} measures {length} m by {width} m.",
            f"{who} has a rectangular {site}, {length} m long and {width} m wide.",
        ]
    )
    outside = rng.choice(
        [
            f"A strip {strip} m wide is laid all round it, outside.",
            f"Around it, a path {strip} m wide is added.",
        ]
    )
    inside = rng.choice(
        [f"A strip {strip} m wide is laid along its edge, inside.", f"Its outermost {strip} m become a path."]
    )
    ask = rng.choice(["How many tiles of 1 m by 1 m does this take?", "What is its area in square metres?"])

    def around(w: Derivation) -> str:
        area = w.calc(f"the area of the {site}", f"{length} × {width}")
        far_area = w.calc(
            "the area to the strip's far side", f"({length} + {2 * strip}) × ({width} + {2 * strip})"
        )
        return w.calc("the area of the strip", f"{far_area} − {area}")

    def within(w: Derivation) -> str:
        area = w.calc(f"the area of the {site}", f"{length} × {width}")
        far_area = w.calc(
            "the area to the strip's far side", f"({length} − {2 * strip}) × ({width} − {2 * strip})"
        )
        return w.calc("the area of the strip", f"{area} − {far_area}")

    return TwoReadings(
        {"length": length, "width": width, "strip": strip},
        (f"{setup} {outside} {ask}", f"{setup} {inside} {ask}"),
        (
            f"the strip lies outside the {site} and not inside it",
            f"the strip lies inside the {site} and not outside it",
        ),
        (around, within),
        (f"the {site} is {length} m by {width} m", f"the strip is {strip} m wide"),
    )


def posts(rng: random.Random) -> TwoReadings:
    """Posts along an open line, or round a closed one."""
    gap, gaps, price = rng.randint(2, 15), rng.randint(6, 40), rng.randint(3, 30)
    length, objects = gap * gaps, rng.choice(["lanterns", "posts", "flags", "trees", "bollards", "speakers"])
    place = rng.choice(PLACES)
    opens = rng.choice([f"Along a straight path of {length} m", f"On one side of a road {length} m long"])
    closed = rng.choice([f"Round a circular track of {length} m", f"Round a closed loop {length} m long"])
    layout = rng.choice(
        [
            f"at {place}, {objects} stand every {gap} m",
            f"near {place}, {objects} are set {gap} m apart",
        ]
    )
    ask = rng.choice([f"At {price} each, what do they cost?", f"One costs {price}. What is the total cost?"])

    def straight(w: Derivation) -> str:
        spaces = w.calc("the number of gaps", f"{length} ÷ {gap}")
        number = w.calc(f"the number of {objects}", f"{spaces} + 1")
        return w.calc("the cost", f"{number} × {price}")

    def loop(w: Derivation) -> str:
        spaces = w.calc("the number of gaps", f"{length} ÷ {gap}")
        number = w.say(f"the number of {objects} equals the number of gaps, {spaces}", spaces)
        return w.calc("the cost", f"{number} × {price}")

    return TwoReadings(
        {"length": length, "gap": gap, "price": price},
        (f"{opens} {layout}, with one at either end. {ask}", f"{closed} {layout}. {ask}"),
        (
            f"the line is open and not closed, which fixes the number of {objects}",
            f"the line is closed and not open, which fixes the number of {objects}",
        ),
        (straight, loop),
        (f"the line is {length} m long", f"the gap is {gap} m", f"the price is {price}"),
    )
