"""IncrementalAlterConfigs, versions 0 and 1: set, delete, append to or subtract from single settings (KIP-339)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.config_decisions import ConfigAlteration, ConfigOperation
from odradek.handlers.config_access import split_by_access
from odradek.handlers.own_settings import refuse_unusable
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: IncrementalAlterConfigsRequest, context: RequestContext) -> IncrementalAlterConfigsResponse:
    allowed, refused = split_by_access(context, request.resources)
    changes = [
        ConfigAlteration(
            resource.resource_type,
            resource.resource_name,
            [ConfigOperation(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in allowed
    ]
    changes, unusable = await refuse_unusable(context, changes)
    results = await context.services.controller.incremental_alter_configs(changes, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=result.error,
                error_message=result.message,
                resource_type=result.resource_type,
                resource_name=result.resource_name,
            )
            for result in refused + unusable + results
        ]
    )
