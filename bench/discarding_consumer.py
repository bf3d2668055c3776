"""A consumer that costs next to nothing, as if it ran on a machine of its own: `python -m bench.discarding_consumer`.

It reads the one partition of a topic once to learn which offsets to ask for; then, for each line that it is given, it
asks for the same again, the next before the last has come, and has the system throw away what comes. "ready", and then
the seconds of each such pass, go to standard output. A client that decodes its records takes the core that the broker,
or whoever is measured, would have had.
"""

import argparse
import socket
import struct
import sys
import time

FETCH, VERSION = 1, 4  # the oldest that every broker of today answers: no sessions, no tags
PARTITION_BYTES = 1 << 20
ANSWER_BYTES = 50 << 20
PATIENCE_MS = 500
TIMEOUT_S = 60
BATCH_OVERHEAD_BYTES = 12  # base offset and length, which the length does not count
LAST_OFFSET_DELTA_AT = 23
THROW_AWAY = socket.MSG_TRUNC if sys.platform == "linux" else 0  # the flag means something else elsewhere


class DiscardingConsumer:
    """One connection, and up to two requests on their way."""

    def __init__(self, address: str, topic: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._topic = topic.encode()

    def learn(self, record_count: int) -> list[int]:
        """The offsets that a consumer would ask for, one after another, until it has so many records."""
        offsets = []
        offset = 0
        while offset < record_count:
            offsets.append(offset)
            self._ask(offset)
            answer = self._receive(self._answer_bytes())
            following = offset_after(self._records(answer), offset)
            if following == offset:
                raise RuntimeError(f"nothing came from offset {offset} on, of {record_count} records")
            offset = following
        return offsets

    def read(self, offsets: list[int]) -> None:
        self._ask(offsets[0])
        for following in offsets[1:]:
            self._ask(following)
            self._discard(self._answer_bytes())
        self._discard(self._answer_bytes())

    def _ask(self, offset: int) -> None:
        header = struct.pack(">hhih", FETCH, VERSION, 0, -1)
        limits = struct.pack(">iiiib", -1, PATIENCE_MS, 1, ANSWER_BYTES, 0)
        topic = struct.pack(">ih", 1, len(self._topic)) + self._topic
        partition = struct.pack(">iiqi", 1, 0, offset, PARTITION_BYTES)
        frame = header + limits + topic + partition
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def _answer_bytes(self) -> int:
        (size_bytes,) = struct.unpack(">i", self._receive(4))
        return int(size_bytes)

    def _records(self, answer: bytes) -> bytes:
        topic_at = 4 + 4 + 4  # correlation, throttle time, one topic
        partition_at = topic_at + 2 + len(self._topic) + 4
        error, _, _, aborted_count, records_bytes = struct.unpack_from(">hqqii", answer, partition_at + 4)
        if error or aborted_count > 0:
            raise RuntimeError(f"a plain read was answered with error {error}")
        return answer[-records_bytes:] if records_bytes else b""

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
    while position + BATCH_OVERHEAD_BYTES <= len(records):
        base_offset, length = struct.unpack_from(">qi", records, position)
        end = position + BATCH_OVERHEAD_BYTES + length
        if end > len(records):
            break
        offset = base_offset + struct.unpack_from(">i", records, position + LAST_OFFSET_DELTA_AT)[0] + 1
        position = end
    return offset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("topic")
    parser.add_argument("records", type=int)
    options = parser.parse_args()
    consumer = DiscardingConsumer(options.address, options.topic)
    offsets = consumer.learn(options.records)
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.monotonic()
        consumer.read(offsets)
        print(time.monotonic() - began, flush=True)


if __name__ == "__main__":
    main()
