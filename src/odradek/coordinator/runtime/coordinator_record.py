"""One record of a coordinator's log. A record without a value (a tombstone) removes its key."""

from typing import NamedTuple


class CoordinatorRecord(NamedTuple):
    key: bytes
    value: bytes | None
