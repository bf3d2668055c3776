"""CPU time of one OffsetCommit between the frame and the encoded answer, in one process without sockets.

    PYTHONPATH=src python -m tests.coordinator.commit_cost [--groups N] [--partitions N] [--commits N] [--profile]

The groups commit in rounds, one commit of each group per turn of the event loop, on a broker whose logs are real files.
The figure is user and system time of the process, so other work on the machine disturbs it little.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

import uvloop

from odradek.handlers.context import ClientConnection
from odradek.handlers.dispatch import LaterAnswer
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.schema import Request
from odradek.server.node import Node
from tests.coordinator.measured_node import measured_node, print_profile
from tests.wire import decode_response, encode_request

TOPIC = "topic"
VERSION = 7  # the one that `python -m bench --only commits` sends


def commit_frame(group: int, offset: int) -> bytes:
    request = OffsetCommitRequest(
        group_id=f"bench-group-{group}",
        generation_id_or_member_epoch=-1,
        topics=[
            OffsetCommitRequestTopic(
                name=TOPIC, partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
            )
        ],
    )
    return encode_request(request, VERSION)[4:]


class CommitCost:
    def __init__(self, node: Node, group_count: int) -> None:
        self._node = node
        self._group_count = group_count
        self._client = ClientConnection("PLAINTEXT", "127.0.0.1")

    async def call(self, request: Request, version: int) -> None:
        await self._answer(encode_request(request, version)[4:])

    async def _answer(self, frame: bytes) -> Any:
        answer = self._node.dispatcher.handle(memoryview(bytearray(frame)), self._client)
        return answer if isinstance(answer, list) else await answer  # type: ignore[misc]  # any awaitable

    async def prepare(self) -> None:
        await self.call(
            CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)]), 7
        )
        await self.call(FindCoordinatorRequest(coordinator_keys=["bench-group-0"]), 4)
        for group in range(self._group_count):
            (answer,) = await self._answer(commit_frame(group, 0))
            response = decode_response(OffsetCommitResponse, bytes(answer)[4:], VERSION)
            assert response.topics[0].partitions[0].error_code == 0

    async def measure(self, commits: int) -> float:
        """Microseconds of CPU time per commit."""
        rounds = commits // self._group_count
        frames = [
            [bytearray(commit_frame(group, offset)) for group in range(self._group_count)]
            for offset in range(1, rounds + 1)
        ]
        handle, client = self._node.dispatcher.handle, self._client
        began_s = time.process_time()
        for some in frames:
            waiting, received = 0, list[Any]()
            for frame in some:
                answer = handle(memoryview(frame), client)
                if not isinstance(answer, list):
                    assert isinstance(answer, LaterAnswer)
                    answer.then(received.append)  # as a connection does
                    waiting += 1
            await asyncio.sleep(0)  # the end of the turn
            assert len(received) == waiting
        return (time.process_time() - began_s) * 1e6 / (rounds * self._group_count)


async def run(arguments: argparse.Namespace) -> None:
    async with measured_node({"offsets.topic.num.partitions": str(arguments.partitions)}) as node:
        cost = CommitCost(node, arguments.groups)
        await cost.prepare()
        await cost.measure(arguments.commits // 4)
        for _ in range(arguments.rounds):
            print(f"{await cost.measure(arguments.commits):.1f} µs per commit")
        if arguments.profile:
            await print_profile(cost.measure(arguments.commits), 45)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=32)
    parser.add_argument("--partitions", type=int, default=50)
    parser.add_argument("--commits", type=int, default=32_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
