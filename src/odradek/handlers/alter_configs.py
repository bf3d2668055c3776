"""AlterConfigs, versions 0 to 2: replace all settings of a resource at once (superseded by IncrementalAlterConfigs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.config_access import config_refusal
from odradek.metadata.config_decisions import ConfigReplacement
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    replacements, answers = [], []
    for resource in request.resources:
        refusal = config_refusal(context, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name)
        if refusal is None:
            values = [(config.name, config.value) for config in resource.configs]
            replacements.append(ConfigReplacement(resource.resource_type, resource.resource_name, values))
        else:
            answers.append(
                AlterConfigsResourceResponse(
                    error_code=refusal,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
    results = await context.services.controller.alter_configs(replacements, validate_only=request.validate_only)
    answers += [
        AlterConfigsResourceResponse(
            error_code=result.error,
            error_message=result.message,
            resource_type=result.resource_type,
            resource_name=result.resource_name,
        )
        for result in results
    ]
    return AlterConfigsResponse(responses=answers)
