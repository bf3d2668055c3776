"""The scenario's verbs of transactions by aiokafka."""

import time
from contextlib import AsyncExitStack
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from tests.clients.drivers.python_clients import PATIENCE_SECONDS, sent_record
from tests.clients.scenario.steps import COPY_PREFIX, DONE, Json


class AiokafkaTransactions:
    _connection: dict[str, Any]

    def _transactional_producer(self, arguments: dict[str, Json]) -> AIOKafkaProducer:
        transactional_id = arguments["transactional_id"]
        return AIOKafkaProducer(**self._connection, transactional_id=transactional_id)

    async def produce_in_transaction(self, arguments: dict[str, Json]) -> Json:
        async with self._transactional_producer(arguments) as producer:
            await producer.begin_transaction()
            offsets = await _send(producer, arguments, arguments["records"])
            await _end(producer, arguments)
            return {"offsets": offsets}

    async def copy(self, arguments: dict[str, Json]) -> Json:
        consumer = AIOKafkaConsumer(
            arguments["topic"],
            **self._connection,
            group_id=arguments["group"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        async with self._transactional_producer(arguments) as producer, consumer:
            records: list[Any] = []
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(records) < arguments["count"] and time.monotonic() < deadline:
                missing = arguments["count"] - len(records)
                for batch in (await consumer.getmany(timeout_ms=500, max_records=missing)).values():
                    records += batch
            await producer.begin_transaction()
            for each in records:
                value, stamp = COPY_PREFIX + each.value, each.timestamp
                await producer.send(arguments["target"], value, each.key, partition=0, timestamp_ms=stamp)
            await producer.flush()  # an abort would discard what is not sent
            position = {TopicPartition(arguments["topic"], 0): records[-1].offset + 1}
            await producer.send_offsets_to_transaction(position, arguments["group"])
            await _end(producer, arguments)
            return {"copied": len(records)}

    async def committed(self, arguments: dict[str, Json]) -> Json:
        async with AIOKafkaConsumer(
            **self._connection, group_id=arguments["group"], enable_auto_commit=False
        ) as consumer:
            return {"offset": await consumer.committed(TopicPartition(arguments["topic"], arguments["partition"]))}

    async def fence(self, arguments: dict[str, Json]) -> Json:
        own, next_own = arguments["records"]
        async with AsyncExitStack() as stack:
            fenced = await stack.enter_async_context(self._transactional_producer(arguments))
            await fenced.begin_transaction()
            await _send(fenced, arguments, [own])
            producer = await stack.enter_async_context(self._transactional_producer(arguments))
            await producer.begin_transaction()
            await _send(producer, arguments, [next_own])
            await producer.commit_transaction()
            try:
                await fenced.commit_transaction()
            except KafkaError:
                return DONE
        return {"error": "the fenced producer could commit"}


async def _send(producer: AIOKafkaProducer, arguments: dict[str, Json], records: list[Json]) -> list[int]:
    sent = [await producer.send(arguments["topic"], **sent_record(arguments["partition"], each)) for each in records]
    return [(await each).offset for each in sent]


async def _end(producer: AIOKafkaProducer, arguments: dict[str, Json]) -> None:
    if arguments["commits"]:
        await producer.commit_transaction()
    else:
        await producer.abort_transaction()
