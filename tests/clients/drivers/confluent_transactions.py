"""The scenario's verbs of transactions by confluent-kafka."""

import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.clients.scenario.steps import COPY_PREFIX, DONE, Json, written_bytes

TIMEOUT_SECONDS = 20.0


class ConfluentTransactions:
    _bootstrap: dict[str, str]

    def _transactional_producer(self, arguments: dict[str, Json]) -> Producer:
        producer = Producer({**self._bootstrap, "transactional.id": arguments["transactional_id"], "linger.ms": 20})
        producer.init_transactions(TIMEOUT_SECONDS)
        return producer

    def produce_in_transaction(self, arguments: dict[str, Json]) -> Json:
        producer = self._transactional_producer(arguments)
        producer.begin_transaction()
        offsets = _send(producer, arguments, arguments["records"])
        _end(producer, arguments)
        return {"offsets": offsets}

    def alternate(self, arguments: dict[str, Json]) -> Json:
        """Each round commits a transaction and aborts the next one, both with a record in every partition and without
        a pause: the broker still ends one of them when the other begins."""
        producer = self._transactional_producer(arguments)
        for _ in range(arguments["rounds"]):
            for commits in (True, False):
                producer.begin_transaction()
                for partition in range(arguments["partitions"]):
                    producer.produce(arguments["topic"], b"kept" if commits else b"dropped", partition=partition)
                _end(producer, {"commits": commits})
        return {"rounds": arguments["rounds"]}

    def copy(self, arguments: dict[str, Json]) -> Json:
        producer = self._transactional_producer(arguments)
        settings = {"group.id": arguments["group"], "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer({**self._bootstrap, **settings, "isolation.level": "read_committed"})
        try:
            consumer.subscribe([arguments["topic"]])
            messages: list[Message] = []
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while len(messages) < arguments["count"] and time.monotonic() < deadline:
                messages += consumer.consume(arguments["count"] - len(messages), timeout=0.5)
            producer.begin_transaction()
            for message in messages:
                copied: Any = COPY_PREFIX + (message.value() or b"")  # its stub wants text as well
                stamp = message.timestamp()[1]
                producer.produce(arguments["target"], copied, key=message.key(), partition=0, timestamp=stamp)
            producer.flush(TIMEOUT_SECONDS)  # an abort would discard what is not sent
            position = TopicPartition(arguments["topic"], 0, (messages[-1].offset() or 0) + 1)
            producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), TIMEOUT_SECONDS)
            _end(producer, arguments)
            return {"copied": len(messages)}
        finally:
            consumer.close()

    def committed(self, arguments: dict[str, Json]) -> Json:
        consumer = Consumer({**self._bootstrap, "group.id": arguments["group"]})
        try:
            asked = [TopicPartition(arguments["topic"], arguments["partition"])]
            (found,) = consumer.committed(asked, timeout=TIMEOUT_SECONDS)
            return {"offset": found.offset if found.offset >= 0 else None}
        finally:
            consumer.close()

    def fence(self, arguments: dict[str, Json]) -> Json:
        own, next_own = arguments["records"]
        fenced = self._transactional_producer(arguments)
        fenced.begin_transaction()
        _send(fenced, arguments, [own])
        producer = self._transactional_producer(arguments)
        producer.begin_transaction()
        _send(producer, arguments, [next_own])
        producer.commit_transaction(TIMEOUT_SECONDS)
        try:
            fenced.commit_transaction(TIMEOUT_SECONDS)
        except KafkaException:
            return DONE
        return {"error": "the fenced producer could commit"}


def _send(producer: Producer, arguments: dict[str, Json], records: list[Json]) -> list[int | None]:
    delivered: list[Message] = []
    for each in records:
        producer.produce(
            arguments["topic"],
            key=written_bytes(each["key"]),
            value=written_bytes(each["value"]),
            partition=arguments["partition"],
            timestamp=each["timestamp"],
            on_delivery=lambda error, message: delivered.append(message) if error is None else None,
        )
    producer.flush(TIMEOUT_SECONDS)
    return [message.offset() for message in delivered]


def _end(producer: Producer, arguments: dict[str, Json]) -> None:
    if arguments["commits"]:
        producer.commit_transaction(TIMEOUT_SECONDS)
    else:
        producer.abort_transaction(TIMEOUT_SECONDS)
