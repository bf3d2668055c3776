"""A consumer that costs next to nothing, as if it ran on a machine of its own: `python -m bench.discarding_consumer`.

It reads a topic once to learn which offsets a consumer of all its partitions asks for, a megabyte of each at a time;
then, for each line that it is given, it asks for the same again and has the system throw away what comes. "ready", and
then the seconds of each such pass, go to standard output. A client that decodes its records takes the core that the
broker, or whoever is measured, would have had.
"""

import argparse
import socket
import struct
import sys
import time
from collections.abc import Iterator

from odradek.protocol.batch import HEADER_SIZE_BYTES, read_batch_header

FETCH, VERSION = 1, 4  # the oldest that every broker of today answers: no sessions, no tags
PARTITION_BYTES = 1 << 20
ANSWER_BYTES = 50 << 20
PATIENCE_MS = 500
TIMEOUT_S = 60
THROW_AWAY = socket.MSG_TRUNC if sys.platform == "linux" else 0  # the flag means something else elsewhere


class DiscardingConsumer:
    """One connection, one request at a time. What it asks for is an offset per partition."""

    def __init__(self, address: str, topic: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._topic = topic.encode()

    def learn(self, partitions: int, record_count: int) -> list[dict[int, int]]:
        """What a consumer would ask for, one after another, until it has so many records."""
        asked = []
        position = dict.fromkeys(range(partitions), 0)
        while sum(position.values()) < record_count:
            asked.append(position)
            self._ask(position)
            answer = self._receive(self._answer_bytes())
            following = {index: offset_after(records, position[index]) for index, records in self._partitions(answer)}
            if following == position:
                raise RuntimeError(f"nothing came after {sum(position.values())} of {record_count} records")
            position = following
        return asked

    def read(self, asked: list[dict[int, int]]) -> None:
        for position in asked:
            self._ask(position)
            self._discard(self._answer_bytes())

    def close(self) -> None:
        self._socket.close()

    def _ask(self, position: dict[int, int]) -> None:
        header = struct.pack(">hhih", FETCH, VERSION, 0, -1)
        limits = struct.pack(">iiiib", -1, PATIENCE_MS, 1, ANSWER_BYTES, 0)
        topic = struct.pack(">ih", 1, len(self._topic)) + self._topic
        partitions = b"".join(struct.pack(">iqi", index, at, PARTITION_BYTES) for index, at in position.items())
        frame = header + limits + topic + struct.pack(">i", len(position)) + partitions
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def _answer_bytes(self) -> int:
        (size_bytes,) = struct.unpack(">i", self._receive(4))
        return int(size_bytes)

    def _partitions(self, answer: bytes) -> Iterator[tuple[int, bytes]]:
        at = 4 + 4 + 4 + 2 + len(self._topic)  # correlation, throttle time, one topic and its name
        (count,) = struct.unpack_from(">i", answer, at)
        at += 4
        for _ in range(count):
            index, error, _, _, aborted_count, size_bytes = struct.unpack_from(">ihqqii", answer, at)
            if error or aborted_count > 0:
                raise RuntimeError(
                    f"a plain read was answered with error {error}, {aborted_count} aborted transactions"
                )
            at += struct.calcsize(">ihqqii")
            yield index, answer[at : at + size_bytes]
            at += size_bytes

    def _receive(self, size_bytes: int) -> bytes:
        received = bytearray()
        while len(received) < size_bytes:
            received += self._some(size_bytes - len(received))
        return bytes(received)

    def _discard(self, size_bytes: int) -> None:
        while size_bytes > 0:
            size_bytes -= len(self._some(min(size_bytes, PARTITION_BYTES), THROW_AWAY))

    def _some(self, most_bytes: int, flags: int = 0) -> bytes:
        data = self._socket.recv(most_bytes, flags)
        if not data:
            raise ConnectionError("the broker closed the connection")
        return data


def offset_after(records: bytes, offset: int) -> int:
    """The offset after the last whole batch."""
    position = 0
    while position + HEADER_SIZE_BYTES <= len(records):
        header = read_batch_header(records, position)
        position += header.size_bytes
        if position <= len(records):
            offset = header.last_offset + 1
    return offset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("topic")
    parser.add_argument("partitions", type=int)
    parser.add_argument("records", type=int)
    options = parser.parse_args()
    consumer = DiscardingConsumer(options.address, options.topic)
    asked = consumer.learn(options.partitions, options.records)
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.monotonic()
        consumer.read(asked)
        print(time.monotonic() - began, flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
