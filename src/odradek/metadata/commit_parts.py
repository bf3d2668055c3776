"""A commit cut into parts that every store can write: some refuse values of more than a megabyte. Pure.

A store makes all parts of a commit visible together; `join_parts` refuses anything that is not the whole commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.metadata.change_codec import encode_changes
from odradek.metadata.store import CommitTooLarge
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.metadata.changes import Change

MAX_PART_BYTES = 512 << 10  # ZooKeeper closes the connection of a client that sends 1 MiB (jute.maxbuffer)
MAX_COMMIT_BYTES = 32 << 20


def encode_commit(changes: Iterable[Change]) -> list[bytes]:
    """The parts of a commit. `CommitTooLarge` above `MAX_COMMIT_BYTES`."""
    data = encode_changes(changes, MAX_COMMIT_BYTES)
    if data is None:
        raise CommitTooLarge(
            f"the changes of one request take more than {MAX_COMMIT_BYTES} bytes of metadata: "
            "split the request into several smaller ones"
        )
    return split_into_parts(data)


def split_into_parts(data: bytes) -> list[bytes]:
    """At least one part, and no part of more than `MAX_PART_BYTES`."""
    return [data[start : start + MAX_PART_BYTES] for start in range(0, max(len(data), 1), MAX_PART_BYTES)]


def join_parts(parts: Sequence[tuple[int, bytes]], part_count: int) -> bytes:
    """The data of numbered parts, in any order of arrival."""
    numbers = [number for number, _ in parts]
    if sorted(numbers) != list(range(part_count)):
        raise MalformedMessage(f"of {part_count} parts those with the numbers {sorted(numbers)} are present")
    return b"".join(data for _, data in sorted(parts))
