"""A member of a group by one of three libraries, in a process of its own:
`python -m tests.coordinator.group_members LIBRARY SERVERS NAME STRATEGY TOPIC…`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import TYPE_CHECKING, Any, Protocol

import aiokafka
import aiokafka.coordinator.assignors.range
import aiokafka.coordinator.assignors.roundrobin
import aiokafka.coordinator.assignors.sticky.sticky_assignor
import confluent_kafka
import kafka
import kafka.coordinator.assignors.cooperative_sticky
import kafka.coordinator.assignors.range
import kafka.coordinator.assignors.roundrobin
import kafka.coordinator.assignors.sticky.sticky_assignor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GROUP = "group"
SESSION_MS = 3000
HEARTBEAT_MS = 300


class Member(Protocol):
    def poll(self) -> list[bytes]:
        """The values that came within a moment."""

    def assignment(self) -> set[tuple[str, int]]: ...

    def close(self) -> None: ...


class ConfluentMember:
    def __init__(self, servers: str, name: str, topics: Sequence[str], strategy: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": GROUP,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": strategy,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "auto.commit.interval.ms": 100,
                "log_level": 0,
            }
        )
        self._consumer.subscribe(list(topics))

    def poll(self) -> list[bytes]:
        messages = self._consumer.consume(500, 0.05)
        return [message.value() or b"" for message in messages if message.error() is None]

    def assignment(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def close(self) -> None:
        self._consumer.close()


class ConfluentConsumerMember(ConfluentMember):
    """The newer protocol: the broker assigns, and says how long a session is."""

    def __init__(self, servers: str, name: str, topics: Sequence[str], _: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": GROUP,
                "group.protocol": "consumer",
                "client.id": name,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 100,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.subscribe(list(topics))


class KafkaPythonMember:
    _STRATEGIES: dict[str, Any] = {  # noqa: RUF012 - a table
        "range": kafka.coordinator.assignors.range.RangePartitionAssignor,
        "roundrobin": kafka.coordinator.assignors.roundrobin.RoundRobinPartitionAssignor,
        "sticky": kafka.coordinator.assignors.sticky.sticky_assignor.StickyPartitionAssignor,
        "cooperative-sticky": kafka.coordinator.assignors.cooperative_sticky.CooperativeStickyAssignor,
    }

    def __init__(self, servers: str, name: str, topics: Sequence[str], strategy: str) -> None:
        self._consumer = kafka.KafkaConsumer(
            *topics,
            bootstrap_servers=servers,
            group_id=GROUP,
            client_id=name,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[self._STRATEGIES[strategy]],
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_commit_interval_ms=100,
        )

    def poll(self) -> list[bytes]:
        batches = self._consumer.poll(timeout_ms=50)
        return [message.value for messages in batches.values() for message in messages]

    def assignment(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def close(self) -> None:
        self._consumer.close()


class AiokafkaMember:
    _STRATEGIES: dict[str, Any] = {  # noqa: RUF012
        "range": aiokafka.coordinator.assignors.range.RangePartitionAssignor,
        "roundrobin": aiokafka.coordinator.assignors.roundrobin.RoundRobinPartitionAssignor,
        "sticky": aiokafka.coordinator.assignors.sticky.sticky_assignor.StickyPartitionAssignor,
    }

    def __init__(self, servers: str, name: str, topics: Sequence[str], strategy: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._consumer = self._run(self._start(servers, name, topics, strategy))

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    async def _start(self, servers: str, name: str, topics: Sequence[str], strategy: str) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(
            *topics,
            bootstrap_servers=servers,
            group_id=GROUP,
            client_id=name,
            auto_offset_reset="earliest",
            partition_assignment_strategy=(self._STRATEGIES[strategy],),
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_commit_interval_ms=100,
        )
        await consumer.start()
        return consumer

    def poll(self) -> list[bytes]:
        batches = self._run(self._consumer.getmany(timeout_ms=50))
        return [message.value for messages in batches.values() for message in messages]

    def assignment(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.close()


LIBRARIES: dict[str, Callable[[str, str, Sequence[str], str], Member]] = {
    "confluent": ConfluentMember,
    "confluent-consumer": ConfluentConsumerMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AiokafkaMember,
}


def main(library: str, servers: str, name: str, strategy: str, *topics: str) -> None:
    """Prints what it is assigned and what it reads, a line of JSON each, until it is told to leave."""
    leaves = []
    signal.signal(signal.SIGTERM, lambda *_: leaves.append(True))
    member = LIBRARIES[library](servers, name, topics, strategy)
    known: set[tuple[str, int]] = set()
    while not leaves:
        if records := member.poll():
            print(json.dumps({"read": [value.decode() for value in records]}), flush=True)
        if (now := member.assignment()) != known:
            known = now
            print(json.dumps({"assigned": sorted(known)}), flush=True)
    member.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
