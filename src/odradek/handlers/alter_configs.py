"""AlterConfigs, versions 0 to 2: replace all settings of a resource at once (superseded by IncrementalAlterConfigs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.config_decisions import ConfigReplacement
from odradek.handlers.config_access import split_by_access
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    allowed, refused = split_by_access(context, request.resources)
    changes = [
        ConfigReplacement(
            resource.resource_type,
            resource.resource_name,
            [(config.name, config.value) for config in resource.configs],
        )
        for resource in allowed
    ]
    results = await context.services.controller.alter_configs(changes, validate_only=request.validate_only)
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=result.error,
                error_message=result.message,
                resource_type=result.resource_type,
                resource_name=result.resource_name,
            )
            for result in refused + results
        ]
    )
