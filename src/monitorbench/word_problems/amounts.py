"""Kinds of word problems about prices and percentages.

Each kind draws a `TwoReadings`: the same numbers, two questions. Unsuitable draws (fractions of a cent,
negative amounts) are left to `word_problems.generate`, which draws again.
"""

import random

from monitorbench.word_problems.derivation import Derivation, TwoReadings
from monitorbench.word_problems.words import CURRENCIES, GOODS, NAMES, PLACES, plural_of


def order(rng: random.Random) -> TwoReadings:
    """Unit price and a reduction that counts once, or for every item."""
    n, price, off = rng.randint(3, 14), rng.randint(7, 45), rng.randint(2, 6)
    item, who, place = rng.choice(GOODS), rng.choice(NAMES), rng.choice(PLACES)
    items, money = plural_of(item), rng.choice(CURRENCIES)
    setup = rng.choice(
        [
            f"{who} orders {n} {items} for {place} at {price} {money} each.",
            f"At {place}, {items} cost {price} {money} apiece and {who} takes {n} of them.",
            f"{who} needs {n} {items}. The list price is {price} {money} per {item}.",
            f"A {item} sells for {price} {money}, and {who} buys {n} for {place}.",
        ]
    )
    once = rng.choice(
        [
            f"A voucher takes {off} {money} off the whole order.",
            f"{off} {money} come off the final bill, once.",
        ]
    )
    each = rng.choice(
        [
            f"A voucher takes {off} {money} off every {item}.",
            f"{off} {money} come off the price of each {item}.",
        ]
    )
    ask = rng.choice(["What is the bill?", f"How much does {who} pay?", "What does it cost in all?"])

    def whole_order(w: Derivation) -> str:
        full = w.calc("the full price", f"{n} × {price}")
        return w.calc("the amount to pay", f"{full} − {off}")

    def every_item(w: Derivation) -> str:
        reduced = w.calc("the reduced price", f"{price} − {off}")
        return w.calc("the amount to pay", f"{n} × {reduced}")

    return TwoReadings(
        {"n": n, "price": price, "off": off},
        (f"{setup} {once} {ask}", f"{setup} {each} {ask}"),
        (
            f"the reduction applies to the whole order, not to every {item}",
            f"the reduction applies to every {item}, not to the whole order",
        ),
        (whole_order, every_item),
        (f"{n} {items} are wanted", f"each costs {price} {money}", f"the reduction is {off} {money}"),
        money,
    )


def discounts(rng: random.Random) -> TwoReadings:
    """Two successive discounts, the second on the reduced or on the list price."""
    price, a, b = 20 * rng.randint(4, 60), 5 * rng.randint(2, 8), 5 * rng.randint(2, 8)
    who, place, money = rng.choice(NAMES), rng.choice(PLACES), rng.choice(CURRENCIES)
    items = plural_of(rng.choice(GOODS))
    setup = rng.choice(
        [
            f"A set of {items} is listed at {price} {money}. {who} gets {a}% off in the sale.",
            f"{who} buys {items} worth {price} {money} for {place}; the sale takes {a}% off.",
            f"A repair at {place} is quoted at {price} {money}, and {a}% comes off for paying early.",
            f"The course {who} wants costs {price} {money}, less {a}% for booking before May.",
        ]
    )
    on_reduced = rng.choice(
        [f"A further {b}% is taken off the reduced price.", f"Then {b}% comes off what is left to pay."]
    )
    on_list = rng.choice(
        [f"A further {b}% of the list price is taken off.", f"Then {b}% of the original price comes off too."]
    )
    ask = rng.choice(["What is the final price?", "How much is left to pay?", "What is paid in the end?"])

    def reduced_price(w: Derivation) -> str:
        after = w.calc("the price after the first cut", f"{100 - a}% of {price}")
        second = w.calc("the second cut", f"{b}% of {after}")
        return w.calc("the final price", f"{after} − {second}")

    def list_price(w: Derivation) -> str:
        after = w.calc("the price after the first cut", f"{100 - a}% of {price}")
        second = w.calc("the second cut", f"{b}% of {price}")
        return w.calc("the final price", f"{after} − {second}")

    return TwoReadings(
        {"price": price, "a": a, "b": b},
        (f"{setup} {on_reduced} {ask}", f"{setup} {on_list} {ask}"),
        (
            f"the {b}% counts on the reduced price and not on the list price",
            f"the {b}% counts on the list price and not on the reduced price",
        ),
        (reduced_price, list_price),
        (f"the list price is {price} {money}", f"the first cut is {a}%", f"the second cut is {b}%"),
        money,
    )


def cancellations(rng: random.Random) -> TwoReadings:
    """A percentage of a percentage, or of the whole."""
    seats, a, b = 20 * rng.randint(5, 60), 5 * rng.randint(8, 18), 5 * rng.randint(1, 7)
    who, place = rng.choice(NAMES), rng.choice(PLACES)
    noun = rng.choice(["seats", "places", "lockers", "berths", "tables", "plots"])
    setup = rng.choice(
        [
            f"{place.capitalize()} has {seats} {noun}, and {a}% of them are booked.",
            f"Of the {seats} {noun} that {who} looks after, {a}% are taken at noon.",
            f"{who} rents out {seats} {noun}; by Friday {a}% of them are reserved.",
        ]
    )
    of_booked = rng.choice(
        [f"Then {b}% of those bookings are cancelled.", f"Later {b}% of the reserved ones are given back."]
    )
    of_all = rng.choice(
        [
            f"Then bookings amounting to {b}% of all {noun} are cancelled.",
            f"Later reserved ones are given back, {b}% of all the {noun} there are.",
        ]
    )
    ask = rng.choice(["How many remain booked?", f"How many {noun} are still reserved?"])

    def booked_only(w: Derivation) -> str:
        booked = w.calc("the number booked", f"{a}% of {seats}")
        gone = w.calc("the number cancelled", f"{b}% of {booked}")
        return w.calc("the number still booked", f"{booked} − {gone}")

    def everything(w: Derivation) -> str:
        booked = w.calc("the number booked", f"{a}% of {seats}")
        gone = w.calc("the number cancelled", f"{b}% of {seats}")
        return w.calc("the number still booked", f"{booked} − {gone}")

    return TwoReadings(
        {"seats": seats, "a": a, "b": b},
        (f"{setup} {of_booked} {ask}", f"{setup} {of_all} {ask}"),
        (
            f"the {b}% refers to the booked {noun} rather than to all the {noun}",
            f"the {b}% refers to all the {noun} rather than to the booked {noun}",
        ),
        (booked_only, everything),
        (f"there are {seats} {noun}", f"{a}% are booked", f"the share cancelled is {b}%"),
        noun,
    )


def exchange(rng: random.Random) -> TwoReadings:
    """A fee taken before or after money is changed."""
    amount, rate, fee = 10 * rng.randint(4, 60), rng.randint(2, 19), rng.randint(3, 15)
    money, foreign = rng.sample(CURRENCIES, 2)
    who, place = rng.choice(NAMES), rng.choice(PLACES)
    setup = rng.choice(
        [
            f"{who} changes {amount} {money} at {rate} {foreign} for each of them.",
            f"At the counter, one of {who}'s {amount} {money} is worth {rate} {foreign}.",
            f"For {place}, {who} turns {amount} {money} into {foreign} at a rate of {rate}.",
        ]
    )
    before = rng.choice(
        [
            f"A fee of {fee} {money} is kept back before the exchange.",
            f"First, {fee} {money} are held back as a fee.",
        ]
    )
    after = rng.choice(
        [
            f"A fee of {fee} {foreign} is kept back after the exchange.",
            f"Last, {fee} {foreign} are held back as a fee.",
        ]
    )
    ask = rng.choice([f"How many {foreign} are handed over?", f"How many {foreign} does {who} get?"])

    def fee_first(w: Derivation) -> str:
        changeable = w.calc("the sum to change", f"{amount} − {fee}")
        return w.calc("the sum handed over", f"{changeable} × {rate}")

    def fee_last(w: Derivation) -> str:
        changed = w.calc("the sum changed", f"{amount} × {rate}")
        return w.calc("the sum handed over", f"{changed} − {fee}")

    return TwoReadings(
        {"amount": amount, "rate": rate, "fee": fee},
        (f"{setup} {before} {ask}", f"{setup} {after} {ask}"),
        (
            f"the fee is taken in {money} before the exchange, not in {foreign} after it",
            f"the fee is taken in {foreign} after the exchange, not in {money} before it",
        ),
        (fee_first, fee_last),
        (f"{amount} {money} are changed", f"the rate is {rate}", f"the fee is {fee}"),
        foreign,
    )


def margin(rng: random.Random) -> TwoReadings:
    """A profit that is a share of the cost, or of the selling price."""
    cost, share = 10 * rng.randint(4, 90), rng.choice([10, 20, 25, 40, 50, 60, 75])
    item, who, money = rng.choice(GOODS), rng.choice(NAMES), rng.choice(CURRENCIES)
    setup = rng.choice(
        [
            f"{who} makes a batch of {plural_of(item)} at a cost of {cost} {money}.",
            f"A box of {plural_of(item)} costs {who} {cost} {money} to buy in.",
            f"For {rng.choice(PLACES)}, {who} repairs a {item}; parts and labour cost {cost} {money}.",
        ]
    )
    on_cost = rng.choice(
        [
            f"The profit is to be {share}% of the cost.",
            f"A profit of {share}%, measured on the cost, is planned.",
        ]
    )
    on_price = rng.choice(
        [
            f"The profit is to be {share}% of the selling price.",
            f"A profit of {share}%, measured on the selling price, is planned.",
        ]
    )
    ask = rng.choice(["What is the selling price?", "At what price must it be sold?"])

    def of_cost(w: Derivation) -> str:
        percent = w.calc("the price as a percentage of the cost", f"100 + {share}")
        return w.calc("the selling price", f"{cost} × {percent} ÷ 100")

    def of_price(w: Derivation) -> str:
        percent = w.calc("the cost as a percentage of the price", f"100 − {share}")
        return w.calc("the selling price", f"{cost} × 100 ÷ {percent}")

    return TwoReadings(
        {"cost": cost, "share": share},
        (f"{setup} {on_cost} {ask}", f"{setup} {on_price} {ask}"),
        (
            f"the {share}% is a share of the cost, not of the selling price",
            f"the {share}% is a share of the selling price, not of the cost",
        ),
        (of_cost, of_price),
        (f"the cost is {cost} {money}", f"the profit is {share}%"),
        money,
    )
