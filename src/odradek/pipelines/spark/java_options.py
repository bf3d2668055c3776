"""Options of Spark's Java processes. Those of the user, `defaultJavaOptions` and `extraJavaOptions`, come after
them, so that they prevail."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS = ("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions")
# A flow may compile to one method of more than 8000 bytes, which Java would never compile.
COMPILE_LARGE_METHODS = "-XX:-DontCompileHugeMethods"
OFFSET = re.compile(r"(?:UTC|UT|GMT)?(?P<offset>[+-]\d{1,2}(?::?\d{2})?)")
REGION = re.compile(r"[A-Za-z][\w+-]*(?:/[\w+-]+)*", re.ASCII)


def java_settings(settings: Mapping[str, str], zone: str) -> dict[str, str]:
    """The settings with the options for a session time zone, each before the user's value."""
    return {name: f"{java_options(zone)} {settings.get(name, '')}".rstrip() for name in SETTINGS}


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
