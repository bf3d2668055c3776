"""The scenario's verbs by aiokafka. Run as a program: `python -m …aiokafka_driver HOST:PORT`."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from tests.clients.drivers.aiokafka_transactions import AiokafkaTransactions
from tests.clients.drivers.client_security import aiokafka_security
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
from tests.clients.scenario.steps import CONFIG_SOURCES, Json


class AiokafkaDriver(AiokafkaTransactions):
    def __init__(self, bootstrap_servers: str) -> None:
        self._connection = {"bootstrap_servers": bootstrap_servers, **aiokafka_security()}
        self._runner = asyncio.Runner()
        self._admin: AIOKafkaAdminClient = self._runner.run(self._start_admin())

    async def _start_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(**self._connection)
        await admin.start()
        return admin

    def perform(self, verb: str, arguments: dict[str, Json]) -> Json:
        return self._runner.run(self._perform(getattr(self, verb), arguments))

    async def _perform(self, act: Callable[[dict[str, Json]], Awaitable[Json]], arguments: dict[str, Json]) -> Json:
        try:
            return await act(arguments)
        except KafkaError as failure:
            return refusal(failure)

    def close(self) -> None:
        self._runner.run(self._admin.close())
        self._runner.close()

    # ---- the cluster and its topics

    async def cluster(self, arguments: dict[str, Json]) -> Json:
        cluster = await self._admin.describe_cluster()
        nodes = [broker["node_id"] for broker in cluster["brokers"]]
        return {"cluster_id": cluster["cluster_id"], "nodes": nodes, "controller": cluster["controller_id"]}

    async def create_topic(self, arguments: dict[str, Json]) -> Json:
        topic = NewTopic(
            arguments["topic"],
            arguments["partitions"],
            arguments["replication_factor"],
            topic_configs=arguments["configs"],
        )
        response = await self._admin.create_topics([topic], validate_only=arguments["validate_only"])
        return refusal(response.topic_errors[0][1])

    async def delete_topic(self, arguments: dict[str, Json]) -> Json:
        response = await self._admin.delete_topics([arguments["topic"]])
        return refusal(response.topic_error_codes[0][1])

    async def list_topics(self, arguments: dict[str, Json]) -> Json:
        return await self._admin.list_topics()

    async def describe_topic(self, arguments: dict[str, Json]) -> Json:
        (topic,) = await self._admin.describe_topics([arguments["topic"]])
        if topic["error_code"]:
            return refusal(topic["error_code"])
        partitions = [
            {
                "partition": each["partition"],
                "leader": each["leader"],
                "replicas": list(each["replicas"]),
                "in_sync": list(each["isr"]),
            }
            for each in topic["partitions"]
        ]
        partitions.sort(key=lambda each: each["partition"])
        return {"error": "NONE", "internal": topic["is_internal"], "partitions": partitions}

    async def create_partitions(self, arguments: dict[str, Json]) -> Json:
        await self._admin.create_partitions({arguments["topic"]: NewPartitions(arguments["count"])})
        return DONE

    # ---- settings

    async def _resource(self, arguments: dict[str, Json], configs: dict[str, Any]) -> ConfigResource:
        if arguments["resource"] == "topic":
            return ConfigResource(ConfigResourceType.TOPIC, arguments["topic"], configs)
        (node_id,) = (await self.cluster({}))["nodes"]
        return ConfigResource(ConfigResourceType.BROKER, str(node_id), configs)

    async def describe_configs(self, arguments: dict[str, Json]) -> Json:
        resource = await self._resource(arguments, dict.fromkeys(arguments["keys"]))
        (response,) = await self._admin.describe_configs([resource])
        (code, _message, _kind, _name, entries) = response.resources[0]
        if code:
            return refusal(code)
        configs = {
            name: {"value": value, "source": CONFIG_SOURCES[source], "read_only": read_only, "sensitive": sensitive}
            for name, value, read_only, source, sensitive, *_more in entries
        }
        return {"error": "NONE", "configs": configs}

    async def replace_configs(self, arguments: dict[str, Json]) -> Json:
        resource = await self._resource(arguments, arguments["configs"])
        (response,) = await self._admin.alter_configs([resource])
        return refusal(response.resources[0][0])

    # ---- records

    async def produce(self, arguments: dict[str, Json]) -> Json:
        producer = AIOKafkaProducer(**self._connection, **producer_settings(arguments))
        await producer.start()
        try:
            sent = [
                await producer.send(arguments["topic"], **sent_record(arguments["partition"], each))
                for each in arguments["records"]
            ]
            await producer.flush()
            return [await _acknowledged(each, arguments["acks"]) for each in sent]
        finally:
            await producer.stop()

    async def _consumer(self, reset: str, isolation: str = "read_uncommitted") -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **self._connection,
            auto_offset_reset=reset,
            isolation_level=isolation,
            **CONSUMER_SETTINGS,
        )
        await consumer.start()
        return consumer

    async def consume(self, arguments: dict[str, Json]) -> Json:
        consumer = await self._consumer(arguments["reset"], arguments.get("isolation", "read_uncommitted"))
        try:
            partitions = [TopicPartition(arguments["topic"], index) for index, _start in arguments["assignments"]]
            consumer.assign(partitions)
            for partition, (_index, start) in zip(partitions, arguments["assignments"], strict=True):
                await _seek(consumer, partition, start)
            return await _poll(consumer, arguments["count"])
        except OffsetOutOfRangeError:
            return {"error": "OFFSET_OUT_OF_RANGE"}
        finally:
            await consumer.stop()

    async def consume_new(self, arguments: dict[str, Json]) -> Json:
        consumer = await self._consumer("none")
        try:
            partition = TopicPartition(arguments["topic"], arguments["partition"])
            consumer.assign([partition])
            await consumer.seek_to_end(partition)
            await consumer.position(partition)
            await self.produce({**arguments, "codec": "none", "acks": -1, "idempotent": False})
            return await _poll(consumer, len(arguments["records"]))
        finally:
            await consumer.stop()

    async def offset(self, arguments: dict[str, Json]) -> Json:
        consumer = await self._consumer("none")
        partition = TopicPartition(arguments["topic"], arguments["partition"])
        at = arguments["at"]
        try:
            if at == "earliest":
                return {"offset": (await consumer.beginning_offsets([partition]))[partition]}
            if at == "latest":
                return {"offset": (await consumer.end_offsets([partition]))[partition]}
            found = (await consumer.offsets_for_times({partition: at}))[partition]
            return {"offset": -1} if found is None else {"offset": found.offset, "at_timestamp": found.timestamp}
        finally:
            await consumer.stop()

    async def delete_records(self, arguments: dict[str, Json]) -> Json:
        partition = TopicPartition(arguments["topic"], arguments["partition"])
        deleted = await self._admin.delete_records({partition: RecordsToDelete(arguments["before"])})
        return {"error": "NONE", "low_watermark": deleted[partition]}


async def _seek(consumer: AIOKafkaConsumer, partition: TopicPartition, start: Json) -> None:
    if start == "beginning":
        await consumer.seek_to_beginning(partition)
    elif isinstance(start, dict):
        found = (await consumer.offsets_for_times({partition: start["timestamp"]}))[partition]
        consumer.seek(partition, found.offset)
    else:
        consumer.seek(partition, start)


async def _acknowledged(future: Awaitable[Any], acks: int) -> Json:
    try:
        metadata = await future
    except KafkaError as failure:
        return refusal(failure)
    return acknowledged(metadata, acks)


async def _poll(consumer: AIOKafkaConsumer, count: int) -> Json:
    records: list[Any] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(records) < count and time.monotonic() < deadline:
        for batch in (await consumer.getmany(timeout_ms=500)).values():
            records += batch
    return consumed(records)


if __name__ == "__main__":
    serve(AiokafkaDriver(sys.argv[1]))
