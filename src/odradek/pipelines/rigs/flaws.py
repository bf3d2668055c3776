"""Invalid records, as they occur in the field: truncated, of a wrong type, with missing fields, or not a record."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

BLOB_BYTES = 1_000_000  # just below a broker's default limit


class Flaw(StrEnum):
    TRUNCATED = "truncated"
    WRONG_TYPE = "wrong type"
    NULL = "null"
    MISSING_FIELD = "missing field"
    BLOB = "blob"


WEIGHTS = {Flaw.TRUNCATED: 70, Flaw.WRONG_TYPE: 50, Flaw.NULL: 40, Flaw.MISSING_FIELD: 39, Flaw.BLOB: 1}
NEEDED = ("event_ID", "hcid", "timestamp", "sensor_readings")  # fields that every record needs
WRONG = ("n/a", [1, 2], {"value": None})


def draw_flaw(chance: Random) -> Flaw:
    return chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def spoil(value: bytes, flaw: Flaw, chance: Random) -> bytes | None:
    """Makes a valid record invalid; None is a record without a value."""
    match flaw:
        case Flaw.TRUNCATED:
            return value[: chance.randrange(1, len(value))]
        case Flaw.BLOB:
            return chance.randbytes(BLOB_BYTES)
        case Flaw.NULL if chance.random() < 0.25:
            return None
    record: dict[str, Any] = json.loads(value)
    field = chance.choice(NEEDED)
    if flaw is Flaw.MISSING_FIELD:
        del record[field]
    elif flaw is Flaw.NULL:
        record[field] = None
    else:
        record["sensor_readings"]["pressure"] = chance.choice(WRONG)
    return json.dumps(record, separators=(",", ":")).encode()
