"""WriteTxnMarkers, versions 1 and 2: coordinators of other brokers, and administrators who abort a hanging transaction,
write the markers that end transactions. The former need ClusterAction on the listener of brokers, the latter Alter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.transactions.transaction import TransactionVersion
from odradek.handlers.broker_access import is_broker
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
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext


async def handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    is_allowed = context.allows_on_cluster(Operation.ALTER, logs=False) or is_broker(context)
    refusal = None if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    appended = [_append(each, refusal, context) for each in request.markers]
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=requested.producer_id, topics=[await _result(each) for each in topics])
            for requested, topics in zip(request.markers, appended, strict=True)
        ]
    )


def _append(
    requested: WritableTxnMarker, refusal: ErrorCode | None, context: RequestContext
) -> list[tuple[str, dict[int, ErrorCode | Awaitable[ErrorCode]]]]:
    """All markers of a request are appended before the first of them is waited for."""
    marker = EndTransactionMarker(
        requested.producer_id,
        requested.producer_epoch,
        ControlRecordType.COMMIT if requested.transaction_result else ControlRecordType.ABORT,
        requested.coordinator_epoch,
    )
    version = TransactionVersion(min(max(requested.transaction_version, 0), TransactionVersion.V2))
    leaders = context.services.transactions.leaders
    return [
        (
            topic.name,
            {
                index: refusal or leaders.append_marker((topic.name, index), marker, version)
                for index in topic.partition_indexes
            },
        )
        for topic in requested.topics
    ]


async def _result(
    appended: tuple[str, dict[int, ErrorCode | Awaitable[ErrorCode]]],
) -> WritableTxnMarkerTopicResult:
    name, outcomes = appended
    results = []
    for index, outcome in outcomes.items():
        error = outcome if isinstance(outcome, ErrorCode) else await outcome
        results.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=error))
    return WritableTxnMarkerTopicResult(name=name, partitions=results)
