"""The requests of transactional clients, over anything that carries a request to a broker and its answer back."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from odradek.protocol.batch import read_batch_header
from odradek.protocol.control_records import ControlRecordType, read_end_transaction_marker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from odradek.protocol.records import Record, build_batch, read_records
from odradek.protocol.schema import Request, Response
from odradek.protocol.topic_partition import TopicPartition

AnyResponse = TypeVar("AnyResponse", bound="Response")

FETCH_VERSION, OFFSET_FETCH_VERSION = 12, 9  # the last ones with names of topics
REQUEST_TIMEOUT_MS = 10_000
BATCH_LIMIT_BYTES = 1 << 20


class Lost(Exception):  # an outcome of a request, not an error
    """No answer: the request may have been carried out, now or later."""


class Connection(Protocol):
    async def call(self, request: Request, response: type[AnyResponse], version: int) -> AnyResponse:
        """Lost when no answer comes."""

    def starts(self, transactional_id: str) -> int:
        """As long as it stays the same, no producer of the id fences another one."""


class Identity(NamedTuple):
    producer_id: int = -1
    epoch: int = -1


NOBODY = Identity()


class Versions(NamedTuple):
    """Of the requests of a client: those of transactions version 1 or 2 (KIP-890)."""

    init: int
    produce: int
    commit_offsets: int
    end: int
    joins_implicitly: bool


VERSION_1 = Versions(init=4, produce=11, commit_offsets=3, end=4, joins_implicitly=False)
VERSION_2 = Versions(init=5, produce=12, commit_offsets=5, end=5, joins_implicitly=True)


async def init_producer(
    connection: Connection, transactional_id: str, timeout_ms: int, identity: Identity, version: int
) -> tuple[ErrorCode, Identity]:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
    )
    answer = await connection.call(request, InitProducerIdResponse, version)
    return ErrorCode(answer.error_code), Identity(answer.producer_id, answer.producer_epoch)


async def add_partition(
    connection: Connection, transactional_id: str, identity: Identity, partition: TopicPartition
) -> ErrorCode:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=partition[0], partitions=[partition[1]])],
    )
    answer = await connection.call(request, AddPartitionsToTxnResponse, 3)
    return ErrorCode(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)


async def add_offsets(connection: Connection, transactional_id: str, identity: Identity, group: str) -> ErrorCode:
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        group_id=group,
    )
    return ErrorCode((await connection.call(request, AddOffsetsToTxnResponse, 3)).error_code)


async def commit_offset(
    connection: Connection,
    transactional_id: str,
    identity: Identity,
    group: str,
    partition: TopicPartition,
    offset: int,
    version: int,
) -> ErrorCode:
    committed = TxnOffsetCommitRequestPartition(
        partition_index=partition[1], committed_offset=offset, committed_metadata=""
    )
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        generation_id=-1,
        member_id="",
        topics=[TxnOffsetCommitRequestTopic(name=partition[0], partitions=[committed])],
    )
    answer = await connection.call(request, TxnOffsetCommitResponse, version)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def end(
    connection: Connection, transactional_id: str, identity: Identity, version: int, *, commits: bool
) -> tuple[ErrorCode, Identity]:
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        committed=commits,
    )
    answer = await connection.call(request, EndTxnResponse, version)
    return ErrorCode(answer.error_code), Identity(answer.producer_id, answer.producer_epoch)


async def produce(
    connection: Connection,
    transactional_id: str,
    identity: Identity,
    partition: TopicPartition,
    sequence: int,
    values: Sequence[bytes],
    now_ms: int,
    version: int,
) -> tuple[ErrorCode, int]:
    """The error and the first offset."""
    batch = build_batch(
        [Record(index, now_ms, b"key", value) for index, value in enumerate(values)],
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        base_sequence=sequence,
        transactional=True,
    )
    data = PartitionProduceData(index=partition[1], records=memoryview(batch))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=REQUEST_TIMEOUT_MS,
        topic_data=[TopicProduceData(name=partition[0], partition_data=[data])],
    )
    answer = (await connection.call(request, ProduceResponse, version)).responses[0].partition_responses[0]
    return ErrorCode(answer.error_code), answer.base_offset


async def fetch_offset(connection: Connection, group: str, partition: TopicPartition) -> tuple[ErrorCode, int]:
    """The committed offset, once no transaction may change it."""
    topic = OffsetFetchRequestTopics(name=partition[0], partition_indexes=[partition[1]])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])], require_stable=True)
    found = (await connection.call(request, OffsetFetchResponse, OFFSET_FETCH_VERSION)).groups[0]
    if found.error_code:
        return ErrorCode(found.error_code), -1
    answer = found.topics[0].partitions[0]
    return ErrorCode(answer.error_code), max(answer.committed_offset, 0)


async def fetch(
    connection: Connection, partition: TopicPartition, offset: int, max_bytes: int, *, is_committed_only: bool
) -> PartitionData:
    wanted = FetchPartition(partition=partition[1], fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        isolation_level=1 if is_committed_only else 0,
        topics=[FetchTopic(topic=partition[0], partitions=[wanted])],
    )
    answer = await connection.call(request, FetchResponse, FETCH_VERSION)
    return answer.responses[0].partitions[0]


def read_fetched(data: PartitionData, *, is_committed_only: bool) -> Iterator[tuple[int, bytes | None]]:
    """Offsets and values as a consumer returns them: without those of aborted transactions, None for a marker. The
    records of a batch that is cut off at the end are not read."""
    assert isinstance(data.records, memoryview)
    aborted = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
    active: set[int] = set()
    view, position = data.records, 0
    while len(view) - position >= 61:
        header = read_batch_header(view, position)
        if header.size_bytes > len(view) - position:
            return
        batch = bytes(view[position : position + header.size_bytes])
        position += header.size_bytes
        while is_committed_only and aborted and aborted[0][0] <= header.last_offset:
            active.add(aborted.pop(0)[1])
        if header.is_control:
            marker = read_end_transaction_marker(batch, header)
            if marker is not None and marker.type is ControlRecordType.ABORT:
                active.discard(header.producer_id)
            yield header.last_offset, None
        elif header.is_transactional and header.producer_id in active:
            yield header.last_offset, None
        else:
            yield from ((record.offset, record.value or b"") for record in read_records(batch, BATCH_LIMIT_BYTES))


async def list_transactions(connection: Connection) -> dict[str, str]:
    answer = await connection.call(ListTransactionsRequest(), ListTransactionsResponse, 0)
    if answer.error_code:
        raise Lost
    return {each.transactional_id: each.transaction_state for each in answer.transaction_states}
