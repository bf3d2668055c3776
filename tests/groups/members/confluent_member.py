"""A member by confluent-kafka (librdkafka): `python -m tests.groups.members.confluent_member SETTINGS`."""

from __future__ import annotations

from typing import Any

import confluent_kafka

from tests.groups.members.member import POLL_S, Batches, Partition, Refused, main, report_partitions
from tests.groups.members.member_settings import CONSUMER, MemberSettings


def client_settings(settings: MemberSettings) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "bootstrap.servers": settings.servers,
        "group.id": settings.group,
        "client.id": settings.name,
        "group.protocol": settings.protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
        **dict(settings.client),
    }
    if settings.protocol == CONSUMER:
        return {**chosen, "group.remote.assignor": settings.assignor}
    return {
        **chosen,
        "partition.assignment.strategy": settings.assignor,
        "session.timeout.ms": settings.session_ms,
        "heartbeat.interval.ms": settings.heartbeat_ms,
    }


class ConfluentMember:
    def __init__(self, settings: MemberSettings) -> None:
        self._batch = settings.batch
        self._consumer: Any = confluent_kafka.Consumer(client_settings(settings))
        self._consumer.subscribe(
            list(settings.topics),
            on_assign=lambda _, partitions: report_partitions("assigned", partitions),
            on_revoke=lambda _, partitions: report_partitions("revoked", partitions),
            on_lost=lambda _, partitions: report_partitions("lost", partitions),
        )

    def poll(self) -> Batches:
        batches: Batches = {}
        for message in self._consumer.consume(self._batch, POLL_S):
            if message.error() is None:
                records = batches.setdefault((message.topic(), message.partition()), [])
                records.append((message.offset(), message.value()))
        return batches

    def commit(self, offsets: dict[Partition, int]) -> None:
        places = [confluent_kafka.TopicPartition(*partition, offset) for partition, offset in offsets.items()]
        try:
            answers = self._consumer.commit(offsets=places, asynchronous=False)
        except confluent_kafka.KafkaException as failure:
            raise Refused(failure.args[0].name()) from None
        for answer in answers:
            if answer.error is not None:
                raise Refused(answer.error.name())

    def close(self) -> None:
        self._consumer.close()


if __name__ == "__main__":
    main(ConfluentMember)
