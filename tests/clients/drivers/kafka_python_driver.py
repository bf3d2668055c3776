"""The scenario's verbs by kafka-python, as a program: `python -m …kafka_python_driver HOST:PORT`."""

import re
import sys
import time
from typing import TYPE_CHECKING, Any

from tests.clients.drivers import codec_modules
from tests.clients.drivers.client_security import kafka_python_security
from tests.clients.drivers.python_clients import (
    CONSUMER_SETTINGS,
    DONE,
    PATIENCE_SECONDS,
    acknowledged,
    consumed,
    producer_settings,
    refusal,
    sent_record,
)
from tests.clients.drivers.serve import serve
from tests.clients.error_names import error_name
from tests.clients.scenario.steps import Json

codec_modules.install()

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition  # noqa: E402 - after its codecs
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType  # noqa: E402
from kafka.errors import KafkaError, OffsetOutOfRangeError  # noqa: E402
from kafka.protocol.consumer import OffsetSpec  # noqa: E402

from tests.clients.drivers.kafka_python_transactions import KafkaPythonTransactions  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST, "max_timestamp": OffsetSpec.MAX_TIMESTAMP}


class KafkaPythonDriver(KafkaPythonTransactions):
    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap = {"bootstrap_servers": bootstrap_servers, **kafka_python_security()}
        self._admin = KafkaAdminClient(**self._bootstrap)

    def perform(self, verb: str, arguments: dict[str, Json]) -> Json:
        act: Callable[[dict[str, Json]], Json] = getattr(self, verb)
        try:
            return act(arguments)
        except KafkaError as failure:
            return refusal(failure)

    def close(self) -> None:
        self._admin.close()

    # ---- the cluster and its topics

    def cluster(self, arguments: dict[str, Json]) -> Json:
        cluster = self._admin.describe_cluster()
        nodes = [broker.get("broker_id", broker.get("node_id")) for broker in cluster["brokers"]]
        return {"cluster_id": cluster["cluster_id"], "nodes": nodes, "controller": cluster["controller_id"]}

    def create_topic(self, arguments: dict[str, Json]) -> Json:
        topic = {
            "num_partitions": arguments["partitions"],
            "replication_factor": arguments["replication_factor"],
            "configs": arguments["configs"],
        }
        self._admin.create_topics({arguments["topic"]: topic}, validate_only=arguments["validate_only"])
        return DONE

    def delete_topic(self, arguments: dict[str, Json]) -> Json:
        self._admin.delete_topics([arguments["topic"]])
        return DONE

    def list_topics(self, arguments: dict[str, Json]) -> Json:
        return self._admin.list_topics()

    def describe_topic(self, arguments: dict[str, Json]) -> Json:
        (topic,) = self._admin.describe_topics([arguments["topic"]])
        if topic["error_code"]:
            return refusal(topic["error_code"])
        partitions = [
            {
                "partition": each["partition_index"],
                "leader": each["leader_id"],
                "replicas": list(each["replica_nodes"]),
                "in_sync": list(each["isr_nodes"]),
            }
            for each in topic["partitions"]
        ]
        partitions.sort(key=lambda each: each["partition"])
        identity = str(topic["topic_id"])
        return {"error": "NONE", "topic_id": identity, "internal": topic["is_internal"], "partitions": partitions}

    def create_partitions(self, arguments: dict[str, Json]) -> Json:
        self._admin.create_partitions({arguments["topic"]: arguments["count"]})
        return DONE

    # ---- settings

    def _resource(self, arguments: dict[str, Json], configs: Any) -> ConfigResource:
        if arguments["resource"] == "topic":
            return ConfigResource(ConfigResourceType.TOPIC, arguments["topic"], configs)
        (node_id,) = self.cluster({})["nodes"]
        return ConfigResource(ConfigResourceType.BROKER, str(node_id), configs)

    def describe_configs(self, arguments: dict[str, Json]) -> Json:
        resource = self._resource(arguments, arguments["keys"])
        described = self._admin.describe_configs([resource], config_filter="all")
        found = described[resource.resource_type.name.lower()][resource.name]
        configs = {
            key: {
                "value": each["value"],
                "source": each["config_source"],
                "read_only": each["read_only"],
                "sensitive": each["is_sensitive"],
            }
            for key, each in found.items()
        }
        return {"error": "NONE", "configs": configs}

    def alter_configs(self, arguments: dict[str, Json]) -> Json:
        changes = {key: (AlterConfigOp[operation.upper()], value) for operation, key, value in arguments["operations"]}
        resource = self._resource(arguments, changes)
        altered = self._admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
        result = altered[resource.resource_type.name.lower()][resource.name]
        code = re.match(r"\[Error (-?\d+)\]", result)
        return {"error": "NONE" if result == "OK" else error_name(int(code[1])) if code else result}

    # ---- records

    def produce(self, arguments: dict[str, Json]) -> Json:
        producer = KafkaProducer(**self._bootstrap, **producer_settings(arguments))
        try:
            sent = [
                producer.send(arguments["topic"], **sent_record(arguments["partition"], each))
                for each in arguments["records"]
            ]
            producer.flush(timeout=PATIENCE_SECONDS)
            return [_acknowledged(each, arguments["acks"]) for each in sent]
        finally:
            producer.close()

    def _consumer(self, reset: str, isolation: str = "read_uncommitted") -> KafkaConsumer:
        own = {"auto_offset_reset": reset, "isolation_level": isolation}
        return KafkaConsumer(**self._bootstrap, **own, **CONSUMER_SETTINGS)

    def consume(self, arguments: dict[str, Json]) -> Json:
        consumer = self._consumer(arguments["reset"], arguments.get("isolation", "read_uncommitted"))
        try:
            partitions = [TopicPartition(arguments["topic"], index) for index, _start in arguments["assignments"]]
            consumer.assign(partitions)
            for partition, (_index, start) in zip(partitions, arguments["assignments"], strict=True):
                if start == "beginning":
                    consumer.seek_to_beginning(partition)
                elif isinstance(start, dict):
                    found = consumer.offsets_for_times({partition: start["timestamp"]})[partition]
                    consumer.seek(partition, found.offset)
                else:
                    consumer.seek(partition, start)
            return _poll(consumer, arguments["count"])
        except OffsetOutOfRangeError:
            return {"error": "OFFSET_OUT_OF_RANGE"}
        finally:
            consumer.close()

    def consume_new(self, arguments: dict[str, Json]) -> Json:
        consumer = self._consumer("none")
        try:
            partition = TopicPartition(arguments["topic"], arguments["partition"])
            consumer.assign([partition])
            consumer.seek_to_end(partition)
            consumer.position(partition)
            self.produce({**arguments, "codec": "none", "acks": -1, "idempotent": False})
            return _poll(consumer, len(arguments["records"]))
        finally:
            consumer.close()

    def offset(self, arguments: dict[str, Json]) -> Json:
        partition = TopicPartition(arguments["topic"], arguments["partition"])
        at = arguments["at"]
        found = self._admin.list_partition_offsets({partition: at if isinstance(at, int) else PLACES[at]})[partition]
        return {"offset": found.offset, "at_timestamp": found.timestamp}

    def delete_records(self, arguments: dict[str, Json]) -> Json:
        partition = TopicPartition(arguments["topic"], arguments["partition"])
        deleted = self._admin.delete_records({partition: arguments["before"]})
        return {"error": "NONE", "low_watermark": deleted[partition]["low_watermark"]}


def _acknowledged(future: Any, acks: int) -> Json:
    try:
        metadata = future.get(timeout=PATIENCE_SECONDS)
    except KafkaError as failure:
        return refusal(failure)
    return acknowledged(metadata, acks)


def _poll(consumer: KafkaConsumer, count: int) -> Json:
    records: list[Any] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(records) < count and time.monotonic() < deadline:
        for batch in consumer.poll(timeout_ms=500).values():
            records += batch
    return consumed(records)


if __name__ == "__main__":
    serve(KafkaPythonDriver(sys.argv[1]))
