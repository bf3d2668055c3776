"""Takes each request to the broker that a client would ask: the leader of its partition, or the coordinator of its key,
by the metadata of some broker, which may be old. Clients keep their coordinator until an answer makes them look for
another one, as Java's do."""

import asyncio
import random
from collections.abc import Sequence

from odradek.coordinator.groups.group_coordinator import OFFSETS_TOPIC
from odradek.coordinator.java_strings import partition_of
from odradek.coordinator.transactions.transaction_coordinator import TRANSACTIONS_TOPIC
from odradek.handlers.registry import build_registry
from odradek.metadata.image import MetadataImage
from odradek.protocol.framing import RequestHeader, decode_request_header
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from odradek.protocol.schema import Request, Response
from tests.cluster.member import Member
from tests.transactions.producers import FENCED, REROUTED
from tests.wire import decode_response

WRONG_BROKER = 0.03  # how often a client asks any broker
PAUSE_S = 0.05  # before an answer that there is nobody to ask
APIS = build_registry()


class Routing:
    """The brokers, as one (`tests.transactions.faulty_network.Broker`)."""

    def __init__(self, members: Sequence[Member], chance: random.Random) -> None:
        self._members = members
        self._chance = chance
        self._leaders: dict[tuple[str, int], tuple[int, int]] = {}  # epoch and leader: clients do not go back
        self._coordinators: dict[tuple[str, str], Member] = {}  # that clients have found, by topic and key

    async def handle(self, frame: bytes) -> bytes | None:
        header = decode_request_header(memoryview(frame), lambda key: APIS[key].request.flexible_from)
        request = APIS[header.api_key].request.decode(memoryview(frame), header.body_position, header.api_version)
        if isinstance(request, ListTransactionsRequest):
            return await self._list_transactions(frame, header.api_version)
        coordinated = _coordinated_by(request)
        member = self._choose(request) if coordinated is None else self._coordinator(coordinated)
        if member is None:
            await asyncio.sleep(PAUSE_S)  # a poll's pause
            return None
        answer = await member.answer(frame)
        is_behind = self._is_behind(member)
        if coordinated is None and not (is_behind and isinstance(request, ProduceRequest)):
            return answer
        errors = set() if answer is None else _error_codes(_decode(answer, header))
        if coordinated is not None and (answer is None or not REROUTED.isdisjoint(errors)):
            self._coordinators.pop(coordinated, None)
        # A coordinator that does not know that it was deposed takes a producer with a newer epoch for a fenced one, as
        # Kafka's does.
        return None if is_behind and not FENCED.isdisjoint(errors) else answer

    def _is_behind(self, member: Member) -> bool:
        ready = [each for each in self._members if each.is_ready]
        return member in ready and any(each.image.version > member.image.version for each in ready)

    def _coordinator(self, coordinated: tuple[str, str]) -> Member | None:
        ready = [member for member in self._members if member.is_ready]
        if ready and self._chance.random() < WRONG_BROKER:
            self._coordinators[coordinated] = self._chance.choice(ready)
        elif ready and coordinated not in self._coordinators:
            image = self._chance.choice(ready).image
            found = self._leader(_partition_of(*coordinated, image), image, ready)
            if found is not None:
                self._coordinators[coordinated] = found
        return self._coordinators.get(coordinated)

    def _choose(self, request: Request) -> Member | None:
        ready = [member for member in self._members if member.is_ready]
        if not ready:
            return None
        # A leader that does not know yet that it was deposed refuses a batch whose predecessors it does not have.
        if self._chance.random() < WRONG_BROKER and not isinstance(request, ProduceRequest):
            return self._chance.choice(ready)
        place = _place_of(request)
        if place is None:
            return self._chance.choice(ready)
        return self._leader(place, self._chance.choice(ready).image, ready)

    def _leader(self, place: tuple[str, int], image: MetadataImage, ready: Sequence[Member]) -> Member | None:
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


def _place_of(request: Request) -> tuple[str, int] | None:
    match request:
        case ProduceRequest():
            return request.topic_data[0].name, request.topic_data[0].partition_data[0].index
        case FetchRequest():
            return request.topics[0].topic, request.topics[0].partitions[0].partition
        case _:
            return None


def _coordinated_by(request: Request) -> tuple[str, str] | None:
    """The topic of the coordinator, and the key that it coordinates."""
    match request:
        case InitProducerIdRequest() | AddOffsetsToTxnRequest() | EndTxnRequest():
            return TRANSACTIONS_TOPIC, request.transactional_id or ""
        case AddPartitionsToTxnRequest():
            return TRANSACTIONS_TOPIC, request.v3_and_below_transactional_id
        case TxnOffsetCommitRequest():
            return OFFSETS_TOPIC, request.group_id
        case OffsetFetchRequest():
            return OFFSETS_TOPIC, request.groups[0].group_id
        case _:
            return None


def _partition_of(topic: str, key: str, image: MetadataImage) -> tuple[str, int]:
    found = image.topics.get(topic)
    return topic, partition_of(key, 1 if found is None else len(found.partitions))


def _decode(answer: bytes, header: RequestHeader) -> Response:
    return decode_response(APIS[header.api_key].response, answer[4:], header.api_version)


def _error_codes(response: Response) -> set[int]:
    match response:
        case ProduceResponse():
            return {each.error_code for topic in response.responses for each in topic.partition_responses}
        case AddPartitionsToTxnResponse():
            topics = response.results_by_topic_v3_and_below
            return {each.partition_error_code for topic in topics for each in topic.results_by_partition}
        case TxnOffsetCommitResponse():
            return {each.error_code for topic in response.topics for each in topic.partitions}
        case OffsetFetchResponse():
            return {group.error_code for group in response.groups}
        case InitProducerIdResponse() | AddOffsetsToTxnResponse() | EndTxnResponse():
            return {response.error_code}
        case _:
            raise AssertionError(f"{response} is of another kind of request")
