"""The scenario's verbs of transactions by kafka-python. Imported after its codecs are installed."""

import time
from contextlib import closing
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from tests.clients.drivers.python_clients import PATIENCE_SECONDS, sent_record
from tests.clients.scenario.steps import COPY_PREFIX, DONE, Json


class KafkaPythonTransactions:
    _bootstrap: dict[str, Any]

    def _transactional_producer(self, arguments: dict[str, Json]) -> KafkaProducer:
        producer = KafkaProducer(**self._bootstrap, transactional_id=arguments["transactional_id"])
        producer.init_transactions()
        return producer

    def produce_in_transaction(self, arguments: dict[str, Json]) -> Json:
        with closing(self._transactional_producer(arguments)) as producer:
            producer.begin_transaction()
            offsets = _send(producer, arguments, arguments["records"])
            _end(producer, arguments)
            return {"offsets": offsets}

    def copy(self, arguments: dict[str, Json]) -> Json:
        consumer = KafkaConsumer(
            arguments["topic"],
            **self._bootstrap,
            group_id=arguments["group"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        with closing(self._transactional_producer(arguments)) as producer, closing(consumer):
            records: list[Any] = []
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(records) < arguments["count"] and time.monotonic() < deadline:
                missing = arguments["count"] - len(records)
                for batch in consumer.poll(timeout_ms=500, max_records=missing).values():
                    records += batch
            producer.begin_transaction()
            for each in records:
                value, stamp = COPY_PREFIX + each.value, each.timestamp
                producer.send(arguments["target"], value, each.key, partition=0, timestamp_ms=stamp)
            producer.flush(PATIENCE_SECONDS)  # an abort would discard what is not sent
            position = OffsetAndMetadata(records[-1].offset + 1, "", -1)
            partition = TopicPartition(arguments["topic"], 0)
            producer.send_offsets_to_transaction({partition: position}, consumer.group_metadata())
            _end(producer, arguments)
            return {"copied": len(records)}

    def committed(self, arguments: dict[str, Json]) -> Json:
        consumer = KafkaConsumer(**self._bootstrap, group_id=arguments["group"], enable_auto_commit=False)
        with closing(consumer):
            return {"offset": consumer.committed(TopicPartition(arguments["topic"], arguments["partition"]))}

    def fence(self, arguments: dict[str, Json]) -> Json:
        own, next_own = arguments["records"]
        fenced = self._transactional_producer(arguments)
        fenced.begin_transaction()
        _send(fenced, arguments, [own])
        with closing(self._transactional_producer(arguments)) as producer:
            producer.begin_transaction()
            _send(producer, arguments, [next_own])
            producer.commit_transaction()
        try:
            fenced.commit_transaction()
        except KafkaError:
            return DONE
        finally:
            fenced.close(timeout=0)
        return {"error": "the fenced producer could commit"}


def _send(producer: KafkaProducer, arguments: dict[str, Json], records: list[Json]) -> list[int]:
    sent = [producer.send(arguments["topic"], **sent_record(arguments["partition"], each)) for each in records]
    return [each.get(timeout=PATIENCE_SECONDS).offset for each in sent]


def _end(producer: KafkaProducer, arguments: dict[str, Json]) -> None:
    if arguments["commits"]:
        producer.commit_transaction()
    else:
        producer.abort_transaction()
