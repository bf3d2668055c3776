"""Kafka's offset checkpoint files: a version, a count, and one line `topic partition offset` for each partition."""

from collections.abc import Mapping

from odradek.host.disk import Disk
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.topic_partition import TopicPartition

_VERSION = 0


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
    lines = [str(_VERSION), str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def decode_checkpoint(data: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    try:
        lines = data.decode().splitlines()
        version, count = int(lines[0]), int(lines[1])
        for line in lines[2:]:
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = int(offset)
    except (ValueError, IndexError) as error:
        raise MalformedMessage(f"not an offset checkpoint: {error}") from error
    if version != _VERSION or count != len(offsets):
        raise MalformedMessage(f"an offset checkpoint of version {version} with {count} entries has {len(offsets)}")
    return offsets
