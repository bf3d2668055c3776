"""Which dead letters were written back: offsets by partition, kept as records of the topic `__odradek_redrives`.

A record of the ledger has the offsets of a part of a partition as ranges, under the key of that part. The key has the
id of the dead-letter topic, because a topic that was deleted and created again has other letters at the same offsets.
The topic is compacted. Parts of deleted letters are removed by a record without a value.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

TOPIC = "__odradek_redrives"
TOPIC_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(8 * 1024 * 1024), "min.cleanable.dirty.ratio": "0.2"}
PART_OFFSETS = 2_000

Position = tuple[int, int]  # partition and offset
Part = tuple[int, int]  # partition, and offset divided by PART_OFFSETS


class Ledger:
    """The positions of one dead-letter topic that were written back."""

    def __init__(self, topic: str, topic_id: str) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self._keys_of_former_topics: set[bytes] = set()
        self._parts: dict[Part, set[int]] = defaultdict(set)

    def __contains__(self, position: Position) -> bool:
        part = part_of(position)
        return part in self._parts and position[1] in self._parts[part]

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """A record of the ledger; those of other topics, and those that cannot be read, are ignored."""
        topic, topic_id, part = parse_key(key)
        if part is None or key is None or topic != self.topic:
            return
        if topic_id != self.topic_id:
            change = self._keys_of_former_topics.discard if value is None else self._keys_of_former_topics.add
            change(key)
            return
        if value is None:
            self._parts.pop(part, None)
            return
        try:
            ranges = json.loads(value)["offsets"]
            least, most = part[1] * PART_OFFSETS, (part[1] + 1) * PART_OFFSETS
            self._parts[part] = {
                offset
                for first, last in ranges[:PART_OFFSETS]
                for offset in range(max(int(first), least), min(int(last) + 1, most))
            }
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return

    def add(self, positions: Iterable[Position]) -> list[tuple[bytes, bytes]]:
        """Adds positions, and returns the records to write: key and value of every part that has changed."""
        changed: set[Part] = set()
        for position in positions:
            part = part_of(position)
            self._parts[part].add(position[1])
            changed.add(part)
        return [(self._key_of(part), value_of(self._parts[part])) for part in sorted(changed)]

    def outdated(self, starts: Mapping[int, int]) -> list[bytes]:
        """Keys of parts whose dead letters are deleted: with their topic, or by its retention."""
        deleted = [
            self._key_of(part)
            for part in sorted(self._parts)
            if part[0] in starts and (part[1] + 1) * PART_OFFSETS <= starts[part[0]]
        ]
        return [*deleted, *sorted(self._keys_of_former_topics)]

    def _key_of(self, part: Part) -> bytes:
        return key_of(self.topic, self.topic_id, part)


def part_of(position: Position) -> Part:
    return position[0], position[1] // PART_OFFSETS


def key_of(topic: str, topic_id: str, part: Part) -> bytes:
    return json.dumps([topic, topic_id, *part], separators=(",", ":")).encode()


def parse_key(key: bytes | None) -> tuple[str, str, Part | None]:
    """The name and the id of a topic, and the part; None for a part that cannot be read."""
    try:
        topic, topic_id, partition, number = json.loads(key or b"")
        return str(topic), str(topic_id), (int(partition), int(number))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return "", "", None


def value_of(offsets: Iterable[int]) -> bytes:
    return json.dumps({"offsets": list(ranges_of(sorted(offsets)))}, separators=(",", ":")).encode()


def ranges_of(offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Sorted offsets as pairs of the first and the last one of each run."""
    first = last = -1
    for offset in offsets:
        if offset == last + 1 and first >= 0:
            last = offset
            continue
        if first >= 0:
            yield first, last
        first = last = offset
    if first >= 0:
        yield first, last
