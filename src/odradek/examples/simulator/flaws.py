"""Malformed records, as they occur in the field: cut, of a wrong type, with missing fields, or not a record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from odradek.examples.simulator.model import FlawKind, Spoil

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random


def draw_flaw(chance: Random, kinds: Sequence[FlawKind]) -> FlawKind:
    return chance.choices(kinds, [kind.weight for kind in kinds])[0]


def spoil(value: bytes, flaw: FlawKind, chance: Random) -> bytes | None:
    """Makes a valid record malformed; None is a record without a value."""
    match flaw.spoil:
        case Spoil.CUT:
            return value[: chance.randrange(1, len(value))]
        case Spoil.NOISE:
            return chance.randbytes(flaw.size_bytes)
        case Spoil.EMPTY:
            return None
    record: Any = json.loads(value)
    *parents, name = chance.choice(flaw.fields)
    holder = record
    for parent in parents:
        holder = holder[parent]
    if flaw.spoil is Spoil.REMOVE:
        del holder[name]
    else:
        holder[name] = chance.choice(flaw.values)
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
