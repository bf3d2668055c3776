"""WriteTxnMarkers, versions 1 and 2: coordinators of other brokers, and administrators who abort a hanging transaction,
write the markers that end transactions. The former need ClusterAction on the listener of brokers, the latter Alter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.transactions.transaction import TransactionVersion
from odradek.handlers.broker_access import is_broker, is_broker_request
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext


async def handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    is_from_broker = is_broker_request(context, logs=False)
    is_allowed = is_from_broker or context.allows_on_cluster(Operation.ALTER, logs=False) or is_broker(context)
    appended = [
        [
            (topic.name, _append(topic, each, context, is_from_broker=is_from_broker) if is_allowed else _refuse(topic))
            for topic in each.topics
        ]
        for each in request.markers
    ]
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=requested.producer_id, topics=[await _result(each) for each in topics])
            for requested, topics in zip(request.markers, appended, strict=True)
        ]
    )


def _refuse(topic: WritableTxnMarkerTopic) -> dict[int, ErrorCode | Awaitable[ErrorCode]]:
    return dict.fromkeys(topic.partition_indexes, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _append(
    topic: WritableTxnMarkerTopic, requested: WritableTxnMarker, context: RequestContext, *, is_from_broker: bool
) -> dict[int, ErrorCode | Awaitable[ErrorCode]]:
    """All markers of a request are appended before the first of them is waited for."""
    marker = EndTransactionMarker(
        requested.producer_id,
        requested.producer_epoch,
        ControlRecordType.COMMIT if requested.transaction_result else ControlRecordType.ABORT,
        requested.coordinator_epoch,
    )
    version = TransactionVersion(min(max(requested.transaction_version, 0), TransactionVersion.V2))
    leaders = context.services.transactions.leaders
    return {
        index: ErrorCode.TRANSACTION_COORDINATOR_FENCED
        if not is_from_broker and _raises_epoch(topic.name, index, marker, context)
        else leaders.append_marker((topic.name, index), marker, version)
        for index in topic.partition_indexes
    }


def _raises_epoch(topic: str, index: int, marker: EndTransactionMarker, context: RequestContext) -> bool:
    """Whether a client, which may abort a hanging transaction, claims a coordinator epoch that this partition has not
    seen: markers of the real coordinator, with its lower epoch, would be refused from then on."""
    partition = context.services.partitions.find(topic, index)
    known = None if partition is None else partition.log.producers.entries.get(marker.producer_id)
    return marker.coordinator_epoch > max(0, 0 if known is None else known.coordinator_epoch)


async def _result(
    appended: tuple[str, dict[int, ErrorCode | Awaitable[ErrorCode]]],
) -> WritableTxnMarkerTopicResult:
    name, outcomes = appended
    results = []
    for index, outcome in outcomes.items():
        error = outcome if isinstance(outcome, ErrorCode) else await outcome
        results.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=error))
    return WritableTxnMarkerTopicResult(name=name, partitions=results)
