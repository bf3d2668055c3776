"""A member by confluent-kafka (librdkafka): `python -m tests.groups.members.confluent_member WISH`."""

from __future__ import annotations

from typing import Any

import confluent_kafka

from tests.groups.members.member import POLL_S, Batches, Partition, Refused, main, tell_partitions
from tests.groups.members.wish import CONSUMER, Wish


def settings(wish: Wish) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "bootstrap.servers": wish.servers,
        "group.id": wish.group,
        "client.id": wish.name,
        "group.protocol": wish.protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
        **dict(wish.client),
    }
    if wish.protocol == CONSUMER:
        return {**chosen, "group.remote.assignor": wish.assignor}
    return {
        **chosen,
        "partition.assignment.strategy": wish.assignor,
        "session.timeout.ms": wish.session_ms,
        "heartbeat.interval.ms": wish.heartbeat_ms,
    }


class ConfluentMember:
    def __init__(self, wish: Wish) -> None:
        self._batch = wish.batch
        self._consumer: Any = confluent_kafka.Consumer(settings(wish))
        self._consumer.subscribe(
            list(wish.topics),
            on_assign=lambda _, partitions: tell_partitions("assigned", partitions),
            on_revoke=lambda _, partitions: tell_partitions("revoked", partitions),
            on_lost=lambda _, partitions: tell_partitions("lost", partitions),
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
