"""Patterns by which subscriptions choose clients: RE2's syntax, so that matching takes time in proportion to the text,
which the client chooses."""

from __future__ import annotations

from typing import Any

MOST_MEMORY_BYTES = 1 << 20


class InvalidClientPattern(Exception):
    pass


def compile_client_pattern(pattern: str) -> Any:
    """RE2 keeps the last 128 compiled patterns."""
    import re2  # noqa: PLC0415 - few brokers have a subscription

    options = re2.Options()
    options.max_mem = MOST_MEMORY_BYTES
    options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as problem:
        raise InvalidClientPattern(pattern) from problem
