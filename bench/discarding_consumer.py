"""A consumer that uses almost no CPU, as if it ran on another machine: `python -m bench.discarding_consumer`.

It reads a topic once to learn the offsets of the fetch requests of a consumer of all partitions, a megabyte of each
partition at a time. It prints "ready"; then, for each line on standard input, it sends the same requests again, has the
kernel discard the responses, and prints the seconds of that pass. A client that decodes records would occupy a core
that the broker and the measured client need.
"""

import argparse
import socket
import struct
import sys
import time
from collections.abc import Iterator

from odradek.protocol.batch import HEADER_SIZE_BYTES, read_batch_header

FETCH, VERSION = 1, 4  # the oldest version that Kafka 4 supports: no sessions, no tagged fields
PARTITION_BYTES = 1 << 20
RESPONSE_BYTES = 50 << 20
MAX_WAIT_MS = 500
TIMEOUT_S = 60
DISCARD = socket.MSG_TRUNC if sys.platform == "linux" else 0  # the flag means something else elsewhere


class DiscardingConsumer:
    """One connection, one request at a time. A request is an offset for each partition."""

    def __init__(self, address: str, topic: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._topic = topic.encode()

    def learn(self, partitions: int, record_count: int) -> list[dict[int, int]]:
        """The requests of a consumer, in order, until it has read this many records."""
        requests = []
        position = dict.fromkeys(range(partitions), 0)
        while sum(position.values()) < record_count:
            requests.append(position)
            self._send(position)
            response = self._receive(self._response_bytes())
            next_position = {
                index: offset_after(records, position[index]) for index, records in self._partitions(response)
            }
            if next_position == position:
                raise RuntimeError(f"no records after {sum(position.values())} of {record_count}")
            position = next_position
        return requests

    def read(self, requests: list[dict[int, int]]) -> None:
        for position in requests:
            self._send(position)
            self._discard(self._response_bytes())

    def close(self) -> None:
        self._socket.close()

    def _send(self, position: dict[int, int]) -> None:
        header = struct.pack(">hhih", FETCH, VERSION, 0, -1)
        limits = struct.pack(">iiiib", -1, MAX_WAIT_MS, 1, RESPONSE_BYTES, 0)
        topic = struct.pack(">ih", 1, len(self._topic)) + self._topic
        partitions = b"".join(struct.pack(">iqi", index, at, PARTITION_BYTES) for index, at in position.items())
        frame = header + limits + topic + struct.pack(">i", len(position)) + partitions
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def _response_bytes(self) -> int:
        (size_bytes,) = struct.unpack(">i", self._receive(4))
        return int(size_bytes)

    def _partitions(self, response: bytes) -> Iterator[tuple[int, bytes]]:
        at = 4 + 4 + 4 + 2 + len(self._topic)  # correlation, throttle time, one topic and its name
        (count,) = struct.unpack_from(">i", response, at)
        at += 4
        for _ in range(count):
            index, error, _, _, aborted_count, size_bytes = struct.unpack_from(">ihqqii", response, at)
            if error or aborted_count > 0:
                raise RuntimeError(f"a fetch returned error {error} and {aborted_count} aborted transactions")
            at += struct.calcsize(">ihqqii")
            yield index, response[at : at + size_bytes]
            at += size_bytes

    def _receive(self, size_bytes: int) -> bytes:
        received = bytearray()
        while len(received) < size_bytes:
            received += self._receive_some(size_bytes - len(received))
        return bytes(received)

    def _discard(self, size_bytes: int) -> None:
        while size_bytes > 0:
            size_bytes -= len(self._receive_some(min(size_bytes, PARTITION_BYTES), DISCARD))

    def _receive_some(self, most_bytes: int, flags: int = 0) -> bytes:
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
    requests = consumer.learn(options.partitions, options.records)
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.monotonic()
        consumer.read(requests)
        print(time.monotonic() - began, flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
