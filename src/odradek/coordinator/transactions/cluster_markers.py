"""Markers for partitions that any broker of a cluster leads: written here, or sent to their leaders."""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.coordinator.transactions.outbox import Outbox
from odradek.coordinator.transactions.peers import MARKERS, REPEATED_MARKERS
from odradek.coordinator.transactions.transaction_records import by_topic
from odradek.protocol.control_records import ControlRecordType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from odradek.client.broker_address import BrokerAddress
    from odradek.coordinator.transactions.local_markers import LocalMarkers
    from odradek.coordinator.transactions.peers import Peers
    from odradek.coordinator.transactions.transaction import TransactionVersion
    from odradek.host.clock import Clock
    from odradek.protocol.control_records import EndTransactionMarker
    from odradek.protocol.topic_partition import TopicPartition

TIMEOUT_MS = 10_000.0  # longer than leaders wait for their replicas, so that they say which markers are committed
MARKERS_PER_REQUEST = 1_000


class _Marker(NamedTuple):
    partition: TopicPartition
    marker: EndTransactionMarker
    version: TransactionVersion
    outcome: asyncio.Future[ErrorCode]


class ClusterMarkers:
    def __init__(
        self, local: LocalMarkers, peers: Peers, clock: Clock, run: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._local = local
        self._peers = peers
        self._first: Outbox[_Marker] = Outbox(
            _Sender(peers, MARKERS), run, clock, most_items=MARKERS_PER_REQUEST, lane_count=len(MARKERS)
        )
        self._repeated: Outbox[_Marker] = Outbox(
            _Sender(peers, (REPEATED_MARKERS,)), run, clock, most_items=MARKERS_PER_REQUEST
        )

    def append_marker(
        self,
        partition: TopicPartition,
        marker: EndTransactionMarker,
        version: TransactionVersion,
        *,
        is_repeated: bool = False,
    ) -> ErrorCode | Awaitable[ErrorCode]:
        """The outcome, now or later. UNKNOWN_TOPIC_OR_PARTITION only for a topic that was deleted: a leader that does
        not know it yet will."""
        topic, index = partition
        image = self._peers.metadata.image.topics.get(topic)
        if image is None or index >= len(image.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        leader = image.partitions[index].leader
        if self._peers.is_own(leader):
            outcome = self._local.append_marker(partition, marker, version)
            return outcome if inspect.isawaitable(outcome) else _repeatable(outcome)
        address = self._peers.address(leader)
        if address is None:
            return ErrorCode.LEADER_NOT_AVAILABLE
        item = _Marker(partition, marker, version, asyncio.get_running_loop().create_future())
        (self._repeated if is_repeated else self._first).add(address, item)
        return item.outcome


class _Sender:
    """A `BatchSender` of markers, with a connection for each lane."""

    def __init__(self, peers: Peers, purposes: Sequence[str]) -> None:
        self._peers = peers
        self._purposes = purposes

    async def send(self, address: BrokerAddress, items: Sequence[_Marker], lane: int) -> None:
        by_marker: defaultdict[tuple[EndTransactionMarker, TransactionVersion], list[_Marker]] = defaultdict(list)
        for item in items:
            by_marker[item.marker, item.version].append(item)
        request = WriteTxnMarkersRequest(markers=[_encode(*key, group) for key, group in by_marker.items()])
        client = self._peers.client(address, self._purposes[lane])
        response = await client.call(request, WriteTxnMarkersResponse, timeout_ms=TIMEOUT_MS)
        for group, answer in zip(by_marker.values(), response.markers, strict=False):
            outcomes = _outcomes(answer)
            for item in group:
                _resolve(item, _repeatable(outcomes.get(item.partition, ErrorCode.UNKNOWN_SERVER_ERROR)))
        self.give_up(items)  # those without an answer

    def give_up(self, items: Sequence[_Marker]) -> None:
        for item in items:
            _resolve(item, ErrorCode.REQUEST_TIMED_OUT)


def _encode(marker: EndTransactionMarker, version: TransactionVersion, items: Sequence[_Marker]) -> WritableTxnMarker:
    topics = by_topic(item.partition for item in items)
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.type is ControlRecordType.COMMIT,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=version,
    )


def _outcomes(answer: WritableTxnMarkerResult) -> dict[TopicPartition, ErrorCode]:
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


def _repeatable(error: ErrorCode) -> ErrorCode:
    """The topic exists in the metadata, so its leader will know it, or the metadata will lose it."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error


def _resolve(item: _Marker, error: ErrorCode) -> None:
    if not item.outcome.done():
        item.outcome.set_result(error)
