"""The regular expressions by which members of consumer groups subscribe (KIP-848): RE2's syntax, matching whole names.

RE2 takes time in proportion to a name's length, whatever the pattern, and the limits below bound the factor. Ten
thousand names take some 50 ms with a usual pattern and 10 ms each with the worst, so matching runs on a worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

# What is parsed of a pattern takes up to 10 KiB and 30 µs a byte (`\pL\pL\pL…`); Kafka's record holds 32,767 bytes.
MOST_PATTERN_BYTES = 4096
# For the program that RE2 makes of it and for the states that it meets while matching.
MOST_MEMORY_BYTES = 1 << 20


class InvalidPattern(Exception):
    """The message says why, as a part of a sentence."""


def matching_names(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Slow: called on a worker. InvalidPattern when no name can ever be looked for by this."""
    match = _compile(pattern).fullmatch
    return frozenset([name for name in names if match(name) is not None])


def _compile(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - few brokers ever meet a pattern

    size_bytes = len(pattern.encode(errors="replace"))
    if size_bytes > MOST_PATTERN_BYTES:
        raise InvalidPattern(f"it has {size_bytes} bytes, more than {MOST_PATTERN_BYTES}")
    options = re2.Options()
    options.max_mem = MOST_MEMORY_BYTES
    options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        raise InvalidPattern(problem.args[0].decode(errors="replace")) from None
    except UnicodeEncodeError:
        raise InvalidPattern("it is not Unicode") from None
    finally:
        re2.purge()  # it would keep the last 128
