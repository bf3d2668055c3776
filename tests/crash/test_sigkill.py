"""A broker that is killed at random instants under load loses nothing that it acknowledged, and doubles nothing.

CRASH_ROUNDS makes it longer and CRASH_SEED other; `make soak` does.
"""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.testing import BrokerError, broker
from tests.crash.load import Load, check, read_everything
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.testing import RunningBroker

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "4"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
TOPIC = "crashed"
PARTITION_COUNT = 4
LONGEST_LIFE_S = 0.5

pytestmark = pytest.mark.timeout(120 + 10 * ROUNDS)

PROPERTIES = {
    "log.flush.offset.checkpoint.interval.ms": 200,
    "log.retention.check.interval.ms": 500,
    # Segments of some tenths of a second, so that a kill often comes in the middle of a roll.
    "log.roll.ms": 300,
    "log.index.size.max.bytes": 1024,
    "log.segment.delete.delay.ms": 0,
}


COMPACTION = {"log.cleaner.backoff.ms": 100, "log.cleaner.min.cleanable.ratio": 0}
LONGEST_COMPACTION_S = 0.3


def make_topic(running: RunningBroker, cleanup_policy: str = "delete") -> None:
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    topic = NewTopic(TOPIC, PARTITION_COUNT, config={"cleanup.policy": cleanup_policy})
    admin.create_topics([topic])[TOPIC].result(30)


def test_nothing_acknowledged_is_lost_or_doubled(record_property: Callable[[str, object], None]) -> None:
    chance = random.Random(SEED)
    with broker(PROPERTIES) as running:
        make_topic(running)
        load = Load(running.bootstrap_servers, TOPIC, PARTITION_COUNT)
        load.begin()
        for _ in range(ROUNDS):
            load.await_progress()
            time.sleep(chance.uniform(0, LONGEST_LIFE_S))  # a poll's pause: the random instant
            running.kill()
            if chance.random() < 0.25:
                kill_while_starting(running, chance.uniform(0.1, 0.6))
            running.start()
        check_everything(running, load)
    record_property("records", load.count)
    record_property("rounds", ROUNDS)


def test_a_kill_in_the_middle_of_compaction_loses_nothing(record_property: Callable[[str, object], None]) -> None:
    """Every record has a key of its own, so that all must be there still."""
    chance = random.Random(SEED)
    rounds = max(3, ROUNDS // 4)
    with broker(PROPERTIES | COMPACTION) as running:
        make_topic(running, "compact")
        load = Load(running.bootstrap_servers, TOPIC, PARTITION_COUNT, is_keyed=True)
        load.begin()
        for _ in range(rounds):
            load.await_progress()
            await_compaction(running)
            time.sleep(chance.uniform(0, LONGEST_COMPACTION_S))  # a poll's pause: the random instant
            running.kill()
            running.start()
        check_everything(running, load)
    record_property("records", load.count)
    record_property("rounds", rounds)


def check_everything(running: RunningBroker, load: Load) -> None:
    """When the load has ended: all that was sent is there, as it was acknowledged."""
    load.end()
    assert not load.problems
    records = read_everything(running.bootstrap_servers, TOPIC, PARTITION_COUNT)
    check(records, load.acknowledged)
    assert sum(len(each) for each in records.values()) == load.count


def await_compaction(running: RunningBroker) -> None:
    """Wait until a segment is being rewritten."""
    rewritten = partial(Path(running.data_directory).glob, f"{TOPIC}-*/*.log.cleaned")
    eventually(lambda: any(rewritten()), "a compaction", pause_s=0.001)


def kill_while_starting(running: RunningBroker, delay_s: float) -> None:
    """In the middle of recovery, perhaps; or just after it, when the machine is quick."""
    starting = threading.Thread(target=_try_to_start, args=(running,))
    dead = running.process
    starting.start()
    eventually(lambda: running.process is not dead, pause_s=0.001)
    time.sleep(delay_s)  # a poll's pause: the random instant
    assert running.process is not None
    running.process.kill()  # the process alone: all else of it belongs to the thread that starts it
    starting.join()
    running.kill()


def _try_to_start(running: RunningBroker) -> None:
    with suppress(BrokerError):
        running.start()
