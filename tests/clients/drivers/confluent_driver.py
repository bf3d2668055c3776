"""The scenario's verbs by confluent-kafka, that is librdkafka. It also stands in for clients that lack a verb."""

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it re-exports without saying so
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.clients.drivers.client_security import librdkafka_security
from tests.clients.drivers.confluent_transactions import ConfluentTransactions
from tests.clients.drivers.serve import serve
from tests.clients.error_names import error_name
from tests.clients.scenario.steps import Json, shown_bytes, written_bytes

DONE = {"error": "NONE"}
PATIENCE_SECONDS = 20.0
TIMEOUT_SECONDS = 20.0


class ConfluentDriver(ConfluentTransactions):
    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap = {**librdkafka_security(), "bootstrap.servers": bootstrap_servers}
        self._admin = AdminClient(dict(self._bootstrap))

    def perform(self, verb: str, arguments: dict[str, Json]) -> Json:
        act: Callable[[dict[str, Json]], Json] = getattr(self, verb)
        try:
            return act(arguments)
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == KafkaError._AUTO_OFFSET_RESET and "Offset out of range" in error.str():
                return {"error": "OFFSET_OUT_OF_RANGE"}  # librdkafka's own code for the broker's error
            return {"error": error_name(error.code()) if error.code() >= 0 else str(error)}

    def close(self) -> None:
        pass

    # ---- the cluster and its topics

    def cluster(self, arguments: dict[str, Json]) -> Json:
        cluster = self._admin.describe_cluster(request_timeout=TIMEOUT_SECONDS).result()
        nodes = [node.id for node in cluster.nodes]
        return {"cluster_id": cluster.cluster_id, "nodes": nodes, "controller": cluster.controller.id}

    def create_topic(self, arguments: dict[str, Json]) -> Json:
        topic = NewTopic(
            arguments["topic"], arguments["partitions"], arguments["replication_factor"], config=arguments["configs"]
        )
        created = self._admin.create_topics(
            [topic], validate_only=arguments["validate_only"], request_timeout=TIMEOUT_SECONDS
        )
        created[arguments["topic"]].result()
        return DONE

    def delete_topic(self, arguments: dict[str, Json]) -> Json:
        self._admin.delete_topics([arguments["topic"]])[arguments["topic"]].result()
        return DONE

    def list_topics(self, arguments: dict[str, Json]) -> Json:
        return list(self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics)

    def describe_topic(self, arguments: dict[str, Json]) -> Json:
        topic = self._admin.describe_topics(TopicCollection([arguments["topic"]]))[arguments["topic"]].result()
        partitions = [
            {
                "partition": each.id,
                "leader": each.leader.id,
                "replicas": [node.id for node in each.replicas],
                "in_sync": [node.id for node in each.isr],
            }
            for each in topic.partitions
        ]
        identity = str(topic.topic_id)
        return {"error": "NONE", "topic_id": identity, "internal": topic.is_internal, "partitions": partitions}

    def create_partitions(self, arguments: dict[str, Json]) -> Json:
        grown = self._admin.create_partitions([NewPartitions(arguments["topic"], arguments["count"])])
        grown[arguments["topic"]].result()
        return DONE

    # ---- settings

    def _resource(self, arguments: dict[str, Json], **more: Any) -> ConfigResource:
        if arguments["resource"] == "topic":
            return ConfigResource(ResourceType.TOPIC, arguments["topic"], **more)
        node_id = next(iter(self._admin.list_topics(timeout=TIMEOUT_SECONDS).brokers))
        return ConfigResource(ResourceType.BROKER, str(node_id), **more)

    def describe_configs(self, arguments: dict[str, Json]) -> Json:
        resource = self._resource(arguments)
        described = self._admin.describe_configs([resource])[resource].result()
        configs = {
            key: {
                "value": described[key].value,
                "source": ConfigSource(described[key].source).name,
                "read_only": described[key].is_read_only,
                "sensitive": described[key].is_sensitive,
            }
            for key in arguments["keys"]
        }
        return {"error": "NONE", "configs": configs}

    def alter_configs(self, arguments: dict[str, Json]) -> Json:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType[operation.upper()])
            for operation, key, value in arguments["operations"]
        ]
        resource = self._resource(arguments, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result()
        return DONE

    def replace_configs(self, arguments: dict[str, Json]) -> Json:
        resource = self._resource(arguments, set_config=arguments["configs"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._admin.alter_configs([resource])[resource].result()
        return DONE

    # ---- records

    def produce(self, arguments: dict[str, Json]) -> Json:
        settings = {
            "compression.type": arguments["codec"],
            "acks": arguments["acks"],
            "enable.idempotence": arguments["idempotent"],
            "message.max.bytes": 4_000_000,
            "linger.ms": 20,
            "message.timeout.ms": 20_000,
        }
        producer = Producer({**self._bootstrap, **settings})
        answers: list[Json] = [None] * len(arguments["records"])

        def delivered(index: int) -> Callable[[Any, Message], None]:
            def note(error: Any, message: Message) -> None:
                offset = None if arguments["acks"] == 0 else message.offset()
                answers[index] = {"offset": offset} if error is None else {"error": error_name(error.code())}

            return note

        for index, each in enumerate(arguments["records"]):
            headers: list[tuple[str, str | bytes | None]] = [
                (name, written_bytes(value)) for name, value in each["headers"]
            ]
            timestamp = {} if each["timestamp"] is None else {"timestamp": each["timestamp"]}
            producer.produce(
                arguments["topic"],
                key=written_bytes(each["key"]),
                value=written_bytes(each["value"]),
                partition=arguments["partition"],
                headers=headers,
                on_delivery=delivered(index),
                **timestamp,
            )
        producer.flush(PATIENCE_SECONDS)
        return answers

    def _consumer(self, reset: str, isolation: str = "read_uncommitted", **more: Json) -> Consumer:
        settings = {
            "group.id": "unused: partitions are assigned by hand",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": {"none": "error"}.get(reset, reset),
            "fetch.message.max.bytes": 4_000_000,
        }
        return Consumer({**self._bootstrap, **settings, **more})

    def consume(self, arguments: dict[str, Json]) -> Json:
        consumer = self._consumer(arguments["reset"], arguments.get("isolation", "read_uncommitted"))
        try:
            consumer.assign([self._start(consumer, arguments["topic"], *each) for each in arguments["assignments"]])
            return _poll(consumer, arguments["count"])
        finally:
            consumer.close()

    def _start(self, consumer: Consumer, topic: str, partition: int, start: Json) -> TopicPartition:
        if isinstance(start, dict):
            sought = [TopicPartition(topic, partition, start["timestamp"])]
            return consumer.offsets_for_times(sought, timeout=TIMEOUT_SECONDS)[0]
        offset = consumer.get_watermark_offsets(TopicPartition(topic, partition))[0] if start == "beginning" else start
        return TopicPartition(topic, partition, offset)

    def consume_new(self, arguments: dict[str, Json]) -> Json:
        consumer = self._consumer("none")
        try:
            partition = TopicPartition(arguments["topic"], arguments["partition"])
            _low, partition.offset = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_SECONDS)
            consumer.assign([partition])
            self.produce({**arguments, "codec": "none", "acks": -1, "idempotent": False})
            return _poll(consumer, len(arguments["records"]))
        finally:
            consumer.close()

    def read_to_ends(self, arguments: dict[str, Json]) -> Json:
        """Each partition from its first offset to its end, until an error, or until nothing comes for `quiet_ms` after
        a record."""
        topic, ends = arguments["topic"], dict(arguments["ends"])
        consumer = self._consumer("none", **{"fetch.message.max.bytes": arguments["fetch_bytes"]})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        records: dict[int, list[Json]] = {}
        errors: dict[int, str] = {}
        deadline = time.monotonic() + PATIENCE_SECONDS
        quiet_at = deadline  # on a busy machine, the first record may take longer than what is quiet between others
        while ends and time.monotonic() < min(quiet_at, deadline):
            found = consumer.consume(1_000, timeout=0.1)
            if found:
                quiet_at = time.monotonic() + arguments["quiet_ms"] / 1000
            for message in found:
                partition, offset, error = message.partition(), message.offset(), message.error()
                assert partition is not None
                assert offset is not None
                if error is not None:
                    errors[partition] = f"at {offset}: {error}"
                else:
                    message.headers()
                    records.setdefault(partition, []).append([offset, shown_bytes(message.value())])
                if error is not None or offset + 1 >= ends.get(partition, 0):
                    ends.pop(partition, None)
        consumer.close()
        return {"records": records, "errors": errors}

    def offset(self, arguments: dict[str, Json]) -> Json:
        special = {
            "earliest": OffsetSpec.earliest,
            "latest": OffsetSpec.latest,
            "max_timestamp": OffsetSpec.max_timestamp,
        }
        at = arguments["at"]
        place = OffsetSpec.for_timestamp(at) if isinstance(at, int) else special[at]()  # type: ignore[no-untyped-call]  # no types
        partition = TopicPartition(arguments["topic"], arguments["partition"])
        isolation = IsolationLevel.READ_UNCOMMITTED
        found = self._admin.list_offsets({partition: place}, isolation_level=isolation)[partition].result()
        return {"offset": found.offset, "at_timestamp": found.timestamp}

    def delete_records(self, arguments: dict[str, Json]) -> Json:
        partition = TopicPartition(arguments["topic"], arguments["partition"], arguments["before"])
        deleted = self._admin.delete_records([partition])[partition].result()
        return {"error": "NONE", "low_watermark": deleted.low_watermark}


def _poll(consumer: Consumer, count: int) -> Json:
    messages: list[Message] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(messages) < count and time.monotonic() < deadline:
        for message in consumer.consume(count, timeout=0.5):
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            messages.append(message)
    messages.sort(key=lambda message: (message.partition(), message.offset()))
    return {"records": [_shown(message) for message in messages]}


def _shown(message: Message) -> Json:
    kind, timestamp = message.timestamp()
    headers: Any = message.headers() or []
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp,
        "timestamp_type": "LOG_APPEND_TIME" if kind == TIMESTAMP_LOG_APPEND_TIME else "CREATE_TIME",
        "key": shown_bytes(message.key()),
        "value": shown_bytes(message.value()),
        "headers": [[name, shown_bytes(value)] for name, value in headers],
        "leader_epoch": message.leader_epoch(),
    }


if __name__ == "__main__":
    serve(ConfluentDriver(sys.argv[1]))
