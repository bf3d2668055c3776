"""Copiers and broker are killed and restarted while records are copied in transactions: one copy of each, in order."""

from __future__ import annotations

import random
import time
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.testing import RunningBroker
from tests.exactly_once.message_copier import MessageCopier
from tests.pipelines.committed import committed_records

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 2
PATIENCE_SECONDS = 600.0
pytestmark = [pytest.mark.jvm, pytest.mark.soak, pytest.mark.timeout(PATIENCE_SECONDS + 120)]


def fill(broker: RunningBroker, topics: tuple[str, str], count: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for created in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in topics]).values():
        created.result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    for number in range(count):
        producer.produce(topics[0], str(number), key=str(number), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0


@pytest.mark.parametrize(
    ("count", "pause_seconds"), [pytest.param(1_000, 1.0, id="short"), pytest.param(100_000, 6.0, id="long")]
)
def test_each_record_is_copied_once(tmp_path: Path, jvm: None, count: int, pause_seconds: float) -> None:
    seed = random.SystemRandom().randint(1, 1_000_000)
    print(f"seed {seed}")
    moments = random.Random(seed)
    source = f"in-{uuid.uuid4().hex[:6]}"
    topics = (source, f"copies-of-{source}")
    with RunningBroker() as broker, ExitStack() as stack:
        fill(broker, topics, count)
        servers, size = broker.bootstrap_servers, max(20, count // 200)
        copiers = [
            MessageCopier(servers, topics, partition, size, tmp_path / f"copier-{partition}.log")
            for partition in range(PARTITIONS)
        ]
        for copier in copiers:
            stack.callback(copier.close)
        broker_kills = 0
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all(copier.is_done for copier in copiers):
            assert time.monotonic() < deadline
            time.sleep(moments.uniform(pause_seconds / 2, pause_seconds))  # a poll's pause, and the time between faults
            if broker_kills < 2 or moments.random() < 0.3:
                broker.kill()
                broker.start()
                broker_kills += 1
            else:
                moments.choice(copiers).kill_and_start()
            for copier in copiers:
                copier.start_again_if_failed()
        print(f"{broker_kills} kills of the broker, {sum(copier.kills for copier in copiers)} of copiers")
        found = committed_records(broker.bootstrap_servers, topics[1])
        for partition in range(PARTITIONS):
            copied = [int(each.value() or b"") for each in found if each.partition() == partition]
            assert copied == list(range(partition, count, PARTITIONS))
