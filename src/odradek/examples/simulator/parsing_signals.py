"""Parses the signals of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.examples.declared_fields import DeclaredFields, number_of
from odradek.examples.simulator.model import Choice, Distribution, Draw, Signal, Total, Walk
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from odradek.pipelines.definition.places import Problems

SOURCES = ("walk", "draw", "choice", "total")
KEYS = (*SOURCES, "per", "day", "noise", "states", "bounds", "decimals")
WALK_KEYS = ("level", "spread", "settles")
TOTAL_KEYS = ("starts", "adds", "refill")
REFILL_KEYS = ("below", "by")
PARAMETERS = {
    Distribution.UNIFORM: ("from", "to"),
    Distribution.NORMAL: ("mean", "standard deviation"),
    Distribution.LOGNORMAL: ("median", "standard deviation of the logarithm"),
    Distribution.EXPONENTIAL: ("mean",),
}
DEFAULT_SETTLES_S = 300.0
MOST_DECIMALS = 10


def parse_signal(
    key: Scalar, node: Node, numbers: Sequence[str], states: AbstractSet[str], problems: Problems
) -> Signal | None:
    """A signal; `numbers` are the signals before it that are numbers."""
    fields = DeclaredFields(node, KEYS, f"signal '{key.text}'", problems)
    chosen = fields.chosen(SOURCES)
    if chosen is None:
        return None
    parsers: dict[str, Callable[[DeclaredFields], Walk | Draw | Choice | Total | None]] = {
        "walk": parse_walk,
        "draw": parse_draw,
        "choice": parse_choice,
        "total": lambda of: parse_total(of, numbers),
    }
    source = parsers[chosen](fields)
    if chosen == "choice":
        for extra in ("day", "noise", "states", "bounds", "decimals"):
            if extra in fields:
                problems.error(fields.key_place(extra), f"a choice has no {extra}", "remove it")
    elif "per" in fields:
        problems.error(fields.key_place("per"), f"a {chosen} has no per", "remove it; a walk has a level per entity")
    if source is None:
        return None
    decimals = fields.whole("decimals", 0)
    if decimals > MOST_DECIMALS:
        fields.wrong("decimals", f"at most {MOST_DECIMALS}")
    return Signal(
        key.text,
        source,
        fields.number("day", 0.0),
        fields.number("noise", 0.0, least=0),
        parse_states(fields, states),
        fields.span("bounds"),
        decimals,
    )


def parse_states(fields: DeclaredFields, states: AbstractSet[str]) -> tuple[tuple[str, float], ...]:
    found = []
    for name, value in fields.entries("states", "states to what they add"):
        number = number_of(value)
        if name.text not in states:
            hint = suggestion(name.text, states, what="states") or "declare it below states:"
            fields.problems.error(name.place, f"there is no state '{name.text}'", hint)
        elif number is None:
            fields.problems.error(value.place, f"'{name.text}' must add a number, not {describe(value)}")
        else:
            found.append((name.text, number))
    return tuple(found)


def inner(fields: DeclaredFields, key: str, keys: tuple[str, ...]) -> DeclaredFields:
    node = fields.node(key)
    assert node is not None
    return DeclaredFields(node, keys, f"{key} of {fields.what}", fields.problems)


def parse_walk(fields: DeclaredFields) -> Walk | None:
    walk = inner(fields, "walk", WALK_KEYS)
    level = walk.span("level", required="write level: [least, most], from which each entity gets its own")
    settles_s = walk.seconds("settles", DEFAULT_SETTLES_S)
    if not settles_s:
        walk.wrong("settles", "longer than nothing")
        return None
    return None if level is None else Walk(level, walk.number("spread", 0.0, least=0), settles_s)


def parse_draw(fields: DeclaredFields) -> Draw | None:
    draw = inner(fields, "draw", tuple(Distribution))
    name = draw.chosen(tuple(Distribution))
    if name is None:
        return None
    distribution = Distribution(name)
    wanted = PARAMETERS[distribution]
    node = draw.node(name)
    items = node.items if isinstance(node, ListNode) else (node,) if node is not None else ()
    numbers = tuple(number for item in items if (number := number_of(item)) is not None)
    is_positive = distribution not in {Distribution.LOGNORMAL, Distribution.EXPONENTIAL} or (numbers and numbers[0] > 0)
    if len(numbers) != len(items) or len(numbers) != len(wanted) or not is_positive:
        above = " above 0" if distribution in {Distribution.LOGNORMAL, Distribution.EXPONENTIAL} else ""
        draw.wrong(name, f"{' and '.join(wanted)} as numbers{above}", f"write {name}: [{', '.join(wanted)}]")
        return None
    return Draw(distribution, numbers)


def parse_choice(fields: DeclaredFields) -> Choice | None:
    node = fields.node("choice")
    per = fields.text("per") or "record"
    if per not in {"record", "entity"}:
        fields.wrong("per", "record or entity")
    if isinstance(node, ListNode):
        options = [each.value for each in node.items if isinstance(each, Scalar)]
        if options and len(options) == len(node.items) and all(is_option(each) for each in options):
            return Choice(tuple(options), (1.0,) * len(options), per == "entity")  # type: ignore[arg-type]  # the options were checked above
    elif isinstance(node, MappingNode):
        weights = fields.weights("choice")
        if len(weights) < len(node.entries):
            return None
        if weights:
            return Choice(tuple(name for name, _ in weights), tuple(weight for _, weight in weights), per == "entity")
    fields.wrong("choice", "a list of texts or numbers, or a mapping of texts to weights")
    return None


def is_option(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def parse_total(fields: DeclaredFields, numbers: Sequence[str]) -> Total | None:
    total = inner(fields, "total", TOTAL_KEYS)
    starts = total.span("starts", required="write with how much it starts: starts: [100, 2000]")
    below, refill = None, None
    if "refill" in total:
        refilled = inner(total, "refill", REFILL_KEYS)
        below = refilled.number("below", 0.0)
        refill = refilled.span("by", required="write how much is added: by: [1000, 3000]", least=0)
    adds = parse_adds(total, numbers)
    return None if starts is None or adds is None else Total(starts, adds, below, refill)


def parse_adds(total: DeclaredFields, numbers: Sequence[str]) -> tuple[tuple[str, float], ...] | None:
    """What a record adds: a number, or multiples of signals; a number is a multiple of no signal."""
    node = total.node("adds")
    if node is None:
        total.missing("adds", "write adds: {amount: -1}, or adds: 1 to count records")
        return None
    constant = number_of(node)
    if constant is not None:
        return (("", constant),)
    found = []
    for name, value in total.entries("adds", "signals to factors"):
        factor = number_of(value)
        if name.text not in numbers:
            hint = suggestion(name.text, numbers, what="signals before it") or "declare the signal before this one"
            total.problems.error(name.place, f"there is no number '{name.text}' before {total.what}", hint)
        elif factor is None:
            total.problems.error(value.place, f"the factor of '{name.text}' must be a number, not {describe(value)}")
        else:
            found.append((name.text, factor))
    return tuple(found)
