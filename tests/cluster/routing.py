"""Takes each request to the broker that a client would ask: the leader of its partition, or the coordinator of its key,
by the metadata of some broker, which may be old."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.coordinator.groups.group_coordinator import OFFSETS_TOPIC
from odradek.coordinator.java_strings import partition_of
from odradek.coordinator.transactions.transaction_coordinator import TRANSACTIONS_TOPIC
from odradek.handlers.registry import build_registry
from odradek.protocol.framing import decode_request_header
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.wire import decode_response

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from odradek.metadata.image import MetadataImage
    from odradek.protocol.schema import Request
    from tests.cluster.member import Member

WRONG_BROKER = 0.03  # how often a client asks any broker
PAUSE_S = 0.05  # before an answer that there is nobody to ask
APIS = build_registry()


class Routing:
    """The brokers, as one (`tests.transactions.faulty_network.Broker`)."""

    def __init__(self, members: Sequence[Member], chance: random.Random) -> None:
        self._members = members
        self._chance = chance
        self._leaders: dict[tuple[str, int], tuple[int, int]] = {}  # epoch and leader: clients do not go back

    async def handle(self, frame: bytes) -> bytes | None:
        header = decode_request_header(memoryview(frame), lambda key: APIS[key].request.flexible_from)
        request = APIS[header.api_key].request.decode(memoryview(frame), header.body_position, header.api_version)
        if isinstance(request, ListTransactionsRequest):
            return await self._list_transactions(frame, header.api_version)
        member = self._choose(request)
        if member is None:
            await asyncio.sleep(PAUSE_S)  # a poll's pause
            return None
        return await member.answer(frame)

    def _choose(self, request: Request) -> Member | None:
        ready = [member for member in self._members if member.is_ready]
        if not ready:
            return None
        # A leader that does not know yet that it was deposed refuses a batch whose predecessors it does not have.
        if self._chance.random() < WRONG_BROKER and not isinstance(request, ProduceRequest):
            return self._chance.choice(ready)
        place = _place_of(request, image := self._chance.choice(ready).image)
        if place is None:
            return self._chance.choice(ready)
        topic = image.topics.get(place[0])
        if topic is not None:
            found = topic.partitions[place[1]]
            self._leaders[place] = max(self._leaders.get(place, (-1, -1)), (found.leader_epoch, found.leader))
        _, leader = self._leaders.get(place, (-1, -1))
        return next((member for member in ready if member.node_id == leader), None)

    async def _list_transactions(self, frame: bytes, version: int) -> bytes | None:
        """Each broker has those that it coordinates."""
        merged: dict[str, TransactionState] = {}
        for member in self._members:
            data = await member.answer(frame)
            if data is None:
                return None
            answer = decode_response(ListTransactionsResponse, data[4:], version)
            if answer.error_code:
                return data
            merged |= {each.transactional_id: each for each in answer.transaction_states}
        response = ListTransactionsResponse(transaction_states=list(merged.values()))
        body = frame[4:8] + b"\0" + b"".join(bytes(part) for part in response.encode(version))  # type: ignore[arg-type]  # no slices
        return len(body).to_bytes(4, "big") + body


def _place_of(request: Request, image: MetadataImage) -> tuple[str, int] | None:
    match request:
        case ProduceRequest():
            return request.topic_data[0].name, request.topic_data[0].partition_data[0].index
        case FetchRequest():
            return request.topics[0].topic, request.topics[0].partitions[0].partition
        case InitProducerIdRequest() | AddOffsetsToTxnRequest() | EndTxnRequest():
            return _coordinator_of(TRANSACTIONS_TOPIC, request.transactional_id or "", image)
        case AddPartitionsToTxnRequest():
            return _coordinator_of(TRANSACTIONS_TOPIC, request.v3_and_below_transactional_id, image)
        case TxnOffsetCommitRequest():
            return _coordinator_of(OFFSETS_TOPIC, request.group_id, image)
        case OffsetFetchRequest():
            return _coordinator_of(OFFSETS_TOPIC, request.groups[0].group_id, image)
        case _:
            return None


def _coordinator_of(topic: str, key: str, image: MetadataImage) -> tuple[str, int]:
    found = image.topics.get(topic)
    return topic, partition_of(key, 1 if found is None else len(found.partitions))
