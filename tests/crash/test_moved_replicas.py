"""A broker that is killed at random instants while it moves replicas between its log directories, under load, loses
nothing that it acknowledged, and ends with each replica in one log directory, the one that was asked for.

CRASH_ROUNDS makes it longer and CRASH_SEED other; `make soak` does.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.protocol.errors import ErrorCode
from odradek.testing import RunningBroker
from tests.crash.load import Load, check, read_everything
from tests.handlers.brokers import ApacheKafkaBroker
from tests.replica.moved_replicas import move, set_rate
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "3"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
TOPIC = "moved"
PARTITION_COUNT = 2
LONGEST_LIFE_S = 0.4
SLOW = "1000"  # bytes per second: the load is faster
FAST = "1000000000"

pytestmark = pytest.mark.timeout(120 + 10 * ROUNDS)

PROPERTIES = {"log.segment.delete.delay.ms": 600, "log.roll.ms": 300}


def test_moves_that_are_killed_lose_nothing(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    chance = random.Random(SEED)
    paths = [str(tmp_path / name) for name in ("one", "two")]
    running = RunningBroker({"log.dirs": ",".join(paths), **PROPERTIES}, data_directory=paths[0])
    killed: Counter[str] = Counter()
    try:
        running.start()
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITION_COUNT)])[TOPIC].result(30)
        load = Load(running.bootstrap_servers, TOPIC, PARTITION_COUNT, producer_count=1)
        load.begin()
        for number in range(ROUNDS):
            load.await_progress()
            begin_moves(running, paths[1 - number % 2], SLOW if number % 3 == 0 else FAST)
            time.sleep(chance.uniform(0, LONGEST_LIFE_S))  # a poll's pause: the random instant
            running.kill()
            killed.update(state_of(paths, partition) for partition in range(PARTITION_COUNT))
            running.start()
        begin_moves(running, paths[1], FAST)
        await_moves(paths)
        load.end()
        assert not load.problems
        records = read_everything(running.bootstrap_servers, TOPIC, PARTITION_COUNT)
        check(records, load.acknowledged)
        assert sum(len(each) for each in records.values()) == load.count
    finally:
        running.close()
    record_property("killed", dict(killed))
    record_property("records", load.count)
    print(f"{load.count} records, killed in these states: {dict(killed)}")


def begin_moves(running: RunningBroker, path: str, rate: str) -> None:
    broker = ApacheKafkaBroker(running.bootstrap_servers)  # the same requests, over a socket
    set_rate(broker, rate)
    for partition in range(PARTITION_COUNT):
        assert move(broker, TOPIC, path, partition) is ErrorCode.NONE


def state_of(paths: Sequence[str], partition: int) -> str:
    """Of a partition, by the directories that a killed broker has left."""
    name = f"{TOPIC}-{partition}"
    copies = sum((Path(path) / name).exists() for path in paths)
    if copies == 2:
        return "two copies"
    assert copies == 1
    is_copied = any(each.name.endswith("-future") for path in paths for each in Path(path).glob(f"{name}.*"))
    return "incomplete copy" if is_copied else "one copy"


def await_moves(paths: Sequence[str]) -> None:
    """Until all replicas are in the second log directory, and no copy is in the first."""
    eventually(
        lambda: not any(Path(paths[0]).glob(f"{TOPIC}-*")) and not any(Path(paths[1]).glob(f"{TOPIC}-*-future")),
        lambda: [each.name for path in paths for each in Path(path).iterdir()],
    )
    assert len(list(Path(paths[1]).glob(f"{TOPIC}-?"))) == PARTITION_COUNT
