"""DescribeClientQuotas, versions 0 and 1. Quotas are kept with the metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.metadata.client_quotas import QuotaFilter, describe_client_quotas
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from odradek.protocol.refusal import Refusal
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def handle(request: DescribeClientQuotasRequest, context: RequestContext) -> DescribeClientQuotasResponse:
    if not context.allows_on_cluster(Operation.DESCRIBE_CONFIGS):
        return DescribeClientQuotasResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None, entries=None
        )
    found = describe_client_quotas(
        context.services.image.client_quotas,
        [QuotaFilter(each.entity_type, each.match_type, each.match) for each in request.components],
        strict=request.strict,
    )
    if isinstance(found, Refusal):
        return DescribeClientQuotasResponse(error_code=found.error, error_message=found.message, entries=None)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in sorted(entity, key=str)],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in found
        ],
    )
