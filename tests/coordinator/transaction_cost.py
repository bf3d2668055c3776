"""CPU time of one transaction between its frames and the encoded answers, in one process without sockets.

    PYTHONPATH=src python -m tests.coordinator.transaction_cost [--producers N] [--partitions N] [--profile]

Every producer writes one batch to each partition and commits; one request of each producer arrives per turn of the
event loop, on a broker whose logs are real files. The figure is user and system time of the process, so other work on
the machine disturbs it little; the smallest of the rounds is disturbed least.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

import uvloop

from odradek.handlers.context import ClientConnection
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.records import Record, build_batch
from odradek.protocol.schema import Request
from odradek.server.node import Node
from tests.coordinator.measured_node import measured_node, print_profile
from tests.wire import decode_response, encode_request

TOPIC = "topic"
PRODUCE_VERSION, END_VERSION, INIT_VERSION = 12, 5, 5
RECORDS = [Record(index, 1_700_000_000_000, None, b"x" * 100) for index in range(10)]


class Producer:
    def __init__(self, number: int, partitions: int) -> None:
        self.name = f"bench-{number}"
        self.identity = (0, 0)
        self._partitions = partitions

    def produce_frame(self) -> bytes:
        producer_id, epoch = self.identity
        batch = build_batch(RECORDS, producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        data = [PartitionProduceData(index=index, records=memoryview(batch)) for index in range(self._partitions)]
        topics = [TopicProduceData(name=TOPIC, partition_data=data)]
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=30_000, topic_data=topics)
        return encode_request(request, PRODUCE_VERSION)[4:]

    def end_frame(self) -> bytes:
        producer_id, epoch = self.identity
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        return encode_request(request, END_VERSION)[4:]


class TransactionCost:
    def __init__(self, node: Node, producers: int, partitions: int) -> None:
        self._node = node
        self._partitions = partitions
        self._producers = [Producer(number, partitions) for number in range(producers)]
        self._client = ClientConnection("PLAINTEXT", "127.0.0.1")

    async def _call(self, request: Request, version: int) -> bytes:
        (answer,), _ = await self._ask([encode_request(request, version)[4:]])
        return answer

    async def _ask(self, frames: list[bytes]) -> tuple[list[bytes], float]:
        """The answers to requests that arrive in one turn, and the CPU time."""
        views = [memoryview(bytearray(frame)) for frame in frames]
        handle, client = self._node.dispatcher.handle, self._client
        began_s = time.process_time()
        answers: list[Any] = [handle(view, client) for view in views]
        await asyncio.sleep(0)
        answers = [each if isinstance(each, list) else await each for each in answers]
        await asyncio.sleep(0)
        took_s = time.process_time() - began_s
        return [b"".join(bytes(part) for part in answer)[4:] for answer in answers], took_s

    async def prepare(self) -> None:
        topic = CreatableTopic(name=TOPIC, num_partitions=self._partitions, replication_factor=1)
        await self._call(CreateTopicsRequest(topics=[topic]), 7)
        await self._call(FindCoordinatorRequest(key_type=1, coordinator_keys=["bench-0"]), 4)
        for each in self._producers:
            request = InitProducerIdRequest(transactional_id=each.name, transaction_timeout_ms=60_000)
            answer = await self._call(request, INIT_VERSION)
            response = decode_response(InitProducerIdResponse, answer, INIT_VERSION)
            assert response.error_code == 0
            each.identity = response.producer_id, response.producer_epoch

    async def measure(self, rounds: int) -> float:
        """Microseconds of CPU time per transaction."""
        total_s = 0.0
        for _ in range(rounds):
            answers, took_s = await self._ask([each.produce_frame() for each in self._producers])
            total_s += took_s
            for answer in answers:
                produced = decode_response(ProduceResponse, answer, PRODUCE_VERSION)
                assert all(each.error_code == 0 for each in produced.responses[0].partition_responses)
            answers, took_s = await self._ask([each.end_frame() for each in self._producers])
            total_s += took_s
            for producer, answer in zip(self._producers, answers, strict=True):
                ended = decode_response(EndTxnResponse, answer, END_VERSION)
                assert ended.error_code == 0
                producer.identity = ended.producer_id, ended.producer_epoch
        return total_s * 1e6 / (rounds * len(self._producers))


async def run(arguments: argparse.Namespace) -> None:
    async with measured_node({}) as node:
        cost = TransactionCost(node, arguments.producers, arguments.partitions)
        await cost.prepare()
        turns = max(1, arguments.transactions // arguments.producers)
        await cost.measure(turns)
        figures = [await cost.measure(turns) for _ in range(arguments.rounds)]
        print(f"{min(figures):.1f} µs per transaction; all rounds: {' '.join(f'{each:.0f}' for each in figures)}")
        if arguments.profile:
            await print_profile(cost.measure(turns), 60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--producers", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--transactions", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--profile", action="store_true")
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
