"""A member by aiokafka: `python -m tests.groups.members.aiokafka_member SETTINGS`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiokafka
import aiokafka.coordinator.assignors.range
import aiokafka.coordinator.assignors.roundrobin
import aiokafka.coordinator.assignors.sticky.sticky_assignor
import aiokafka.errors

from tests.groups.members.member import POLL_S, Batches, Partition, Refused, main, report_partitions

if TYPE_CHECKING:
    from tests.groups.members.member_settings import MemberSettings

ASSIGNORS: dict[str, Any] = {
    "range": aiokafka.coordinator.assignors.range.RangePartitionAssignor,
    "roundrobin": aiokafka.coordinator.assignors.roundrobin.RoundRobinPartitionAssignor,
    "sticky": aiokafka.coordinator.assignors.sticky.sticky_assignor.StickyPartitionAssignor,
}


class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """aiokafka rebalances in the background: the lock keeps it away from a batch that is not committed yet."""

    def __init__(self, busy: asyncio.Lock) -> None:
        self._busy = busy

    async def on_partitions_assigned(self, assigned: Any) -> None:
        report_partitions("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        async with self._busy:
            report_partitions("revoked", revoked)


class AiokafkaMember:
    def __init__(self, settings: MemberSettings) -> None:
        self._loop = asyncio.new_event_loop()
        self._busy = asyncio.Lock()
        self._consumer = self._run(self._start(settings))

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    async def _start(self, settings: MemberSettings) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=settings.servers,
            group_id=settings.group,
            client_id=settings.name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=(ASSIGNORS[settings.assignor],),
            session_timeout_ms=settings.session_ms,
            heartbeat_interval_ms=settings.heartbeat_ms,
            max_poll_records=settings.batch,
            **dict(settings.client),
        )
        consumer.subscribe(settings.topics, listener=Listener(self._busy))
        await consumer.start()
        return consumer

    def poll(self) -> Batches:
        return self._run(self._poll())  # type: ignore[no-any-return]  # aiokafka has no types

    async def _poll(self) -> Batches:
        self._release()
        fetched = await self._consumer.getmany(timeout_ms=int(POLL_S * 1000))
        await self._busy.acquire()  # without waiting: the other holder never awaits while it holds the lock
        return {
            (place.topic, place.partition): [(record.offset, record.value) for record in records]
            for place, records in fetched.items()
            if records
        }

    def _release(self) -> None:
        if self._busy.locked():
            self._busy.release()

    def commit(self, offsets: dict[Partition, int]) -> None:
        places = {aiokafka.TopicPartition(*partition): offset for partition, offset in offsets.items()}
        try:
            self._run(self._consumer.commit(places))
        except aiokafka.errors.KafkaError as failure:
            raise Refused(type(failure).__name__) from None

    def close(self) -> None:
        self._release()
        self._run(self._consumer.stop())
        self._loop.close()


if __name__ == "__main__":
    main(AiokafkaMember)
