"""Options of Spark's Java processes. Settings `extraJavaOptions` of the user come after them."""

from __future__ import annotations

import re

# A flow may compile to one method of more than 8000 bytes, which Java would never compile.
COMPILE_LARGE_METHODS = "-XX:-DontCompileHugeMethods"
OFFSET = re.compile(r"(?:UTC|UT|GMT)?(?P<offset>[+-]\d{1,2}(?::?\d{2})?)")
REGION = re.compile(r"[A-Za-z][\w+-]*(?:/[\w+-]+)*", re.ASCII)


def java_options(zone: str) -> str:
    """The options for a session time zone. Spark's JDBC reader converts timestamps by the time zone of its process, so
    that both must be the same."""
    known = java_zone(zone)
    return COMPILE_LARGE_METHODS if known is None else f"{COMPILE_LARGE_METHODS} -Duser.timezone={known}"


def java_zone(zone: str) -> str | None:
    """Java's name of a session time zone; None for one that Java cannot have, which it would take for UTC."""
    offset = OFFSET.fullmatch(zone)
    if offset is not None:
        return f"GMT{offset['offset']}"
    return zone if REGION.fullmatch(zone) else None
