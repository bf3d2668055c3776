"""EndTxn, versions 0 to 5: commit or abort a transaction. From version 5 on, the epoch rises by it (KIP-890).

Departure from Kafka: a producer that was fenced by a client of an older version, which has ended its transaction, gets
PRODUCER_FENCED. Kafka takes the request for a retry, and returns the identity of the client that fenced it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.coordinator.transactions.transaction import ProducerIdentity, TransactionVersion
from odradek.coordinator.transactions.transaction_coordinator import InitResult
from odradek.handlers.transactional_id_access import may_write
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext

FIRST_VERSION_THAT_RAISES_EPOCH = 5
FIRST_VERSION_WITH_PRODUCER_FENCED = 2


def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    if not may_write(context, request.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not request.transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    raises_epoch = context.api_version >= FIRST_VERSION_THAT_RAISES_EPOCH
    result = context.services.transactions.end(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        TransactionVersion.V2 if raises_epoch else TransactionVersion.V0,
        commits=request.committed,
    )
    if isinstance(result, InitResult):
        return _respond(result, context.api_version)
    if isinstance(result, WaitingResponse):
        return result.map(partial(_respond, version=context.api_version))
    return _respond_later(result, context.api_version)


async def _respond_later(result: Awaitable[InitResult], version: int) -> EndTxnResponse:
    return _respond(await result, version)


def _respond(result: InitResult, version: int) -> EndTxnResponse:
    error, identity = result
    if error is ErrorCode.PRODUCER_FENCED and version < FIRST_VERSION_WITH_PRODUCER_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=error, producer_id=identity.producer_id, producer_epoch=identity.epoch)
