"""WriteTxnMarkers, versions 1 and 2: coordinators of other brokers, and administrators who abort a hanging transaction,
write the markers that end transactions."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from odradek.coordinator.transactions.transaction import TransactionVersion
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    is_allowed = context.allows_on_cluster(Operation.CLUSTER_ACTION) or context.allows_on_cluster(Operation.ALTER)
    refusal = None if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return WriteTxnMarkersResponse(markers=[await _write(each, refusal, context) for each in request.markers])


async def _write(
    requested: WritableTxnMarker, refusal: ErrorCode | None, context: RequestContext
) -> WritableTxnMarkerResult:
    marker = EndTransactionMarker(
        requested.producer_id,
        requested.producer_epoch,
        ControlRecordType.COMMIT if requested.transaction_result else ControlRecordType.ABORT,
        requested.coordinator_epoch,
    )
    version = TransactionVersion(min(max(requested.transaction_version, 0), TransactionVersion.V2))
    leaders = context.services.transactions.leaders
    topics = []
    for topic in requested.topics:
        results = []
        for index in topic.partition_indexes:
            outcome = refusal or leaders.append_marker((topic.name, index), marker, version)
            error = await outcome if inspect.isawaitable(outcome) else outcome
            results.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=error))
        topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=results))
    return WritableTxnMarkerResult(producer_id=requested.producer_id, topics=topics)
