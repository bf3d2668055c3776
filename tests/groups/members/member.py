"""A member of a group, whichever library it uses: poll, process, commit, and report everything on standard output.

Processing a batch is reporting it. Its offsets are committed afterwards, so that every committed offset was reported,
however the process ends. A line is JSON with an `event`: started (it handles SIGTERM), assigned, revoked, lost,
processed, committed, refused, left.
The value of every record is its offset in decimal; a member that reads anything else ends with an error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from tests.groups.members.member_settings import MemberSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Partition = tuple[str, int]
Batches = dict[Partition, list[tuple[int, bytes]]]  # (offset, value) in order
POLL_S = 0.1


class Refused(Exception):
    """A commit was refused; the message is the library's name for it."""


class Client(Protocol):
    def poll(self) -> Batches:
        """What came within POLL_S. No rebalance may happen until `commit` or the next `poll`."""

    def commit(self, offsets: dict[Partition, int]) -> None: ...

    def close(self) -> None: ...


def report(event: str, **details: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


def report_partitions(event: str, partitions: Iterable[Any]) -> None:
    report(event, partitions=sorted((each.topic, each.partition) for each in partitions))


def runs(batches: Batches) -> Iterator[tuple[str, int, int, int]]:
    """The batches as (topic, partition, first offset, end offset), a new one wherever an offset was left out."""
    for (topic, partition), records in batches.items():
        first = expected = records[0][0]
        for offset, value in records:
            if int(value) != offset:
                raise ValueError(f"{value!r} at offset {offset} of {topic}-{partition}")
            if offset != expected:
                yield topic, partition, first, expected
                first = offset
            expected = offset + 1
        yield topic, partition, first, expected


def live(client: Client, settings: MemberSettings, is_leaving: Callable[[], bool]) -> None:
    while not is_leaving():
        batches = client.poll()
        if not batches:
            continue
        report("processed", runs=list(runs(batches)))
        time.sleep(settings.commit_pause_ms / 1000)  # a poll's pause: the work between processing and commit
        offsets = {partition: records[-1][0] + 1 for partition, records in batches.items()}
        try:
            client.commit(offsets)
        except Refused as refused:
            report("refused", error=str(refused))
        else:
            report("committed", offsets=[(*partition, offset) for partition, offset in offsets.items()])
    client.close()
    report("left")


def main(join: Callable[[MemberSettings], Client]) -> None:
    """Join, and run until SIGTERM, which makes it leave the group, or until standard input is closed."""
    leaving = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: leaving.set())
    threading.Thread(target=_end_with_input, daemon=True).start()
    report("started")
    settings = MemberSettings.from_json(sys.argv[1])
    live(join(settings), settings, leaving.is_set)


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)
