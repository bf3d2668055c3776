"""IncrementalAlterConfigs, versions 0 and 1: set, delete, append to or subtract from single settings (KIP-339)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.config_access import config_refusal
from odradek.metadata.config_decisions import ConfigAlteration, ConfigOperation
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: IncrementalAlterConfigsRequest, context: RequestContext) -> IncrementalAlterConfigsResponse:
    alterations, answers = [], []
    for resource in request.resources:
        refusal = config_refusal(context, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name)
        if refusal is None:
            operations = [
                ConfigOperation(config.name, config.config_operation, config.value) for config in resource.configs
            ]
            alterations.append(ConfigAlteration(resource.resource_type, resource.resource_name, operations))
        else:
            answers.append(
                AlterConfigsResourceResponse(
                    error_code=refusal,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
    results = await context.services.controller.incremental_alter_configs(
        alterations, validate_only=request.validate_only
    )
    answers += [
        AlterConfigsResourceResponse(
            error_code=result.error,
            error_message=result.message,
            resource_type=result.resource_type,
            resource_name=result.resource_name,
        )
        for result in results
    ]
    return IncrementalAlterConfigsResponse(responses=answers)
