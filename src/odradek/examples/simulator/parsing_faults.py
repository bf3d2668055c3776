"""Parses the kinds of faults and flaws of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.examples.declared_fields import DeclaredFields
from odradek.examples.simulator.model import Change, Effect, FaultKind, FlawKind, Spoil
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.nodes import ListNode, Node, Scalar, to_plain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from odradek.examples.simulator.model import Signal
    from odradek.pipelines.definition.places import Problems

FAULT_KEYS = ("lasts", "effects", "records", "weight")
EFFECT_KEYS = (*Change, "most", "factor")
FLAW_KEYS = (*Spoil, "by", "weight")
LARGEST_NOISE_BYTES = 1_000_000


def parse_fault(key: Scalar, node: Node, signals: Mapping[str, Signal], problems: Problems) -> FaultKind | None:
    fields = DeclaredFields(node, FAULT_KEYS, f"fault '{key.text}'", problems)
    lasts = fields.seconds_span("lasts", required="write how long it lasts: lasts: [4 minutes, 8 minutes]")
    effects: list[Effect] = []
    for name, value in fields.entries("effects", "signals to effects"):
        if name.text not in signals:
            problems.error(
                name.place, f"there is no signal '{name.text}'", suggestion(name.text, signals, what="signals")
            )
            continue
        effect = parse_effect(name.text, value, signals, [each.signal for each in effects], problems)
        if effect is not None:
            effects.append(effect)
    if lasts is None:
        return None
    if "effects" not in fields and "records" not in fields:
        fields.missing(
            "effects", "say what it changes: effects: {pressure: {per_minute: 12}}, or records: 0 for silence"
        )
    return FaultKind(
        key.text, lasts, tuple(effects), fields.whole("records", 1), fields.whole("weight", 1, least=1)
    )  # fmt: skip


def parse_effect(
    signal: str, node: Node, signals: Mapping[str, Signal], before: list[str], problems: Problems
) -> Effect | None:
    fields = DeclaredFields(node, EFFECT_KEYS, f"effect on '{signal}'", problems)
    chosen = fields.chosen(tuple(Change))
    if chosen is None:
        return None
    change = Change(chosen)
    if signals[signal].is_text != (change is Change.BECOMES):
        what = "becomes: [values]" if signals[signal].is_text else "one that changes a number, such as add or times"
        problems.error(fields.key_place(chosen), f"'{signal}' cannot have the effect {chosen}", f"use {what}")
        return None
    match change:
        case Change.BECOMES:
            values = fields.words(chosen, required="write becomes: [one, another]")
            return Effect(signal, change, values=values) if values else None
        case Change.OF:
            other = fields.text(chosen)
            if other is not None and other not in before:
                hint = "name a signal whose effect stands before this one"
                problems.error(fields.place_of(chosen), f"this fault has no effect on '{other}' yet", hint)
                return None
            return Effect(signal, change, other=other or "", factor=fields.number("factor", 1.0))
        case Change.DOUBLES_EVERY:
            size = fields.seconds_span(chosen)
        case _:
            size = fields.span(chosen)
    if size is None:
        return None
    return Effect(signal, change, size, fields.number("most", 0.0) if "most" in fields else None)


def parse_flaw(
    key: Scalar, node: Node, paths: AbstractSet[tuple[str, ...]], problems: Problems
) -> FlawKind | None:  # fmt: skip
    fields = DeclaredFields(node, FLAW_KEYS, f"flaw '{key.text}'", problems)
    weight = fields.number("weight", 1.0, least=0)
    chosen = fields.chosen(tuple(Spoil))
    if chosen is None:
        return None
    spoil = Spoil(chosen)
    match spoil:
        case Spoil.CUT | Spoil.EMPTY:
            if not fields.flag(chosen, True):
                fields.wrong(chosen, "true")
            return FlawKind(key.text, weight, spoil)
        case Spoil.NOISE:
            size_bytes = fields.whole(chosen, 1, least=1)
            if size_bytes > LARGEST_NOISE_BYTES:
                fields.wrong(chosen, f"at most {LARGEST_NOISE_BYTES}", "brokers refuse larger records by default")
            return FlawKind(key.text, weight, spoil, size_bytes=size_bytes)
    found = parse_paths(fields, chosen, paths)
    values = ()
    if spoil is Spoil.REPLACE:
        by = fields.node("by")
        if not isinstance(by, ListNode) or not by.items:
            problems.error(
                fields.place_of("by"), f"{fields.what} has no values to replace with", "write by: [null, text]"
            )
            return None
        values = tuple(to_plain(item) for item in by.items)
    return FlawKind(key.text, weight, spoil, found, values) if found else None


def parse_paths(
    fields: DeclaredFields, key: str, paths: AbstractSet[tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:  # fmt: skip
    """Fields of a record, with dots between a field and one inside it."""
    known = sorted(".".join(path) for path in paths)
    found = []
    for name in fields.words(key, required="name fields of the record"):
        if name not in known:
            hint = suggestion(name, known, what="fields")
            fields.problems.error(fields.place_of(key), f"the record has no field '{name}'", hint)
        else:
            found.append(tuple(name.split(".")))
    return tuple(found)
