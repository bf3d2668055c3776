"""Kafka's offset checkpoint files: a version, a count, and one line `topic partition offset` for each partition.
The names of topics are escaped.

A digit that changed would be another offset, for example a later log start. So the last line of ours has a checksum of
the others, under a name that no topic can have: Kafka takes it for a partition that it does not know. A file without it
was written by Kafka."""

import re
from collections.abc import Mapping, Sequence

from odradek.host.disk import Disk
from odradek.log.escaped_names import escape_topic, unescape_topic
from odradek.protocol.checksum import crc32c
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.topic_partition import TopicPartition

_VERSION = 0
CHECKSUM_NAME = "##crc32c"  # two characters that no topic has: a changed bit leaves one
_INVALID_IN_NAMES = re.compile(r"[^A-Za-z0-9._%-]")


class OffsetCheckpoint:
    """One checkpoint file. Writing blocks (fsync); a file that was never written reads as empty."""

    __slots__ = ("_disk", "path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path

    def read(self) -> dict[TopicPartition, int]:
        try:
            data = self._disk.read_file(self.path)
        except FileNotFoundError:
            return {}
        return decode_checkpoint(data)

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._disk.replace_file(self.path, encode_checkpoint(offsets))


def encode_checkpoint(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = [f"{escape_topic(topic)} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    if lines:
        lines.append(f"{CHECKSUM_NAME} 0 {_checksum_of(lines)}")
    return ("\n".join([str(_VERSION), str(len(lines)), *lines]) + "\n").encode()


def _checksum_of(lines: Sequence[str]) -> int:
    return crc32c("\n".join(lines).encode())


def decode_checkpoint(data: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    try:
        lines = data.decode().splitlines()
        version, count = int(lines[0]), int(lines[1])
        for line in lines[2:]:
            topic, partition, offset = line.split()
            if topic == CHECKSUM_NAME:
                if int(offset) != _checksum_of(lines[2:-1]):
                    raise MalformedMessage("an offset checkpoint does not match its checksum")
                count -= 1
            elif _INVALID_IN_NAMES.search(topic):
                raise MalformedMessage(f"an offset checkpoint names the topic {topic!r}")
            else:
                offsets[unescape_topic(topic), int(partition)] = int(offset)
    except (ValueError, IndexError) as error:
        raise MalformedMessage(f"not an offset checkpoint: {error}") from error
    if version != _VERSION or count != len(offsets):
        raise MalformedMessage(f"an offset checkpoint of version {version} with {count} entries has {len(offsets)}")
    return offsets
