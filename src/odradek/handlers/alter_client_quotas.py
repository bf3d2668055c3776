"""AlterClientQuotas, versions 0 and 1. Quotas are kept with the metadata, and apply on each broker of its own.

Departure from Kafka: nothing is changed of an entity that a request names twice and that is answered with
INVALID_REQUEST; Kafka makes the first of the changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import AlterClientQuotas
from odradek.metadata.client_quotas import QuotaAlteration, QuotaOperation
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryDataResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: AlterClientQuotasRequest, context: RequestContext) -> AlterClientQuotasResponse:
    if not context.allows_on_cluster(Operation.ALTER_CONFIGS):
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return AlterClientQuotasResponse(
            entries=[
                EntryDataResponse(error_code=refused, error_message=None, entity=e.entity) for e in request.entries
            ]
        )
    alterations = [
        QuotaAlteration(
            entity=[(part.entity_type, part.entity_name) for part in entry.entity],
            operations=[QuotaOperation(op.key, op.value, op.remove) for op in entry.ops],
        )
        for entry in request.entries
    ]
    results = await context.services.controller.ask(AlterClientQuotas(alterations, validate_only=request.validate_only))
    return AlterClientQuotasResponse(
        entries=[
            EntryDataResponse(
                error_code=result.error,
                error_message=result.message,
                entity=[
                    EntityData(entity_type=kind, entity_name=name) for kind, name in sorted(result.entity, key=str)
                ],
            )
            for result in results
        ]
    )
