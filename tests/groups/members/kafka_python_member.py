"""A member by kafka-python: `python -m tests.groups.members.kafka_python_member SETTINGS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kafka
import kafka.coordinator.assignors.cooperative_sticky
import kafka.coordinator.assignors.range
import kafka.coordinator.assignors.roundrobin
import kafka.coordinator.assignors.sticky.sticky_assignor
import kafka.errors
import kafka.structs

from tests.groups.members.member import POLL_S, Batches, Partition, Refused, main, report_partitions

if TYPE_CHECKING:
    from tests.groups.members.member_settings import MemberSettings

ASSIGNORS: dict[str, Any] = {
    "range": kafka.coordinator.assignors.range.RangePartitionAssignor,
    "roundrobin": kafka.coordinator.assignors.roundrobin.RoundRobinPartitionAssignor,
    "sticky": kafka.coordinator.assignors.sticky.sticky_assignor.StickyPartitionAssignor,
    "cooperative-sticky": kafka.coordinator.assignors.cooperative_sticky.CooperativeStickyAssignor,
}


class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python 3.0.12 keeps its positions in what was revoked, and goes on from there when it gets the same
    partitions again, though another may have read on while it was expelled: they are taken from it."""

    def __init__(self, subscription: Any) -> None:
        self._subscription = subscription

    def on_partitions_assigned(self, assigned: Any) -> None:
        report_partitions("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        report_partitions("revoked", revoked)
        self._subscription.assign_from_subscribed(self._subscription.assigned_partitions() - set(revoked))

    def on_partitions_lost(self, lost: Any) -> None:
        report_partitions("lost", lost)


class KafkaPythonMember:
    def __init__(self, settings: MemberSettings) -> None:
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=settings.servers,
            group_id=settings.group,
            client_id=settings.name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=[ASSIGNORS[settings.assignor]],
            session_timeout_ms=settings.session_ms,
            heartbeat_interval_ms=settings.heartbeat_ms,
            max_poll_records=settings.batch,
            **dict(settings.client),
        )
        self._consumer.subscribe(settings.topics, listener=Listener(self._consumer._subscription))

    def poll(self) -> Batches:
        try:
            fetched = self._consumer.poll(timeout_ms=int(POLL_S * 1000))
        except kafka.errors.KafkaConnectionError:
            return {}  # kafka-python tells so when it looks for a coordinator while the broker is away; ask again
        return {
            (place.topic, place.partition): [(record.offset, record.value) for record in records]
            for place, records in fetched.items()
        }

    def commit(self, offsets: dict[Partition, int]) -> None:
        places = {
            kafka.structs.TopicPartition(*partition): kafka.structs.OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
        try:
            self._consumer.commit(places)
        except kafka.errors.KafkaError as failure:
            raise Refused(type(failure).__name__) from None

    def close(self) -> None:
        self._consumer.close()


if __name__ == "__main__":
    main(KafkaPythonMember)
