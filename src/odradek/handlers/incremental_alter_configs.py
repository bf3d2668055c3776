"""IncrementalAlterConfigs, versions 0 and 1: set, delete, append to or subtract from single settings (KIP-339)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.config_decisions import ConfigAlteration, ConfigOperation
from odradek.handlers.config_access import split_by_access, without_refused
from odradek.handlers.own_settings import refuse_unusable
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.controller.results import ConfigResult
    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.incremental_alter_configs import AlterConfigsResource


async def prepare(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> tuple[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse]:
    """On the broker that receives the request: what the controller is asked, and the refusals of this broker."""
    allowed, _ = split_by_access(context, request.resources, logs=False)  # the controller answers and logs the others
    refused = await refuse_unusable(context, [_change(resource) for resource in allowed])
    remaining = IncrementalAlterConfigsRequest(
        resources=without_refused(request.resources, refused), validate_only=request.validate_only
    )
    return remaining, _response(refused)


async def handle(request: IncrementalAlterConfigsRequest, context: RequestContext) -> IncrementalAlterConfigsResponse:
    allowed, refused = split_by_access(context, request.resources)
    changes = [_change(resource) for resource in allowed]
    if context.services.forwarder is None:
        unusable = await refuse_unusable(context, changes)
        changes = without_refused(changes, unusable)
        refused += unusable
    results = await context.services.controller.incremental_alter_configs(changes, validate_only=request.validate_only)
    return _response(refused + results)


def _change(resource: AlterConfigsResource) -> ConfigAlteration:
    return ConfigAlteration(
        resource.resource_type,
        resource.resource_name,
        [ConfigOperation(config.name, config.config_operation, config.value) for config in resource.configs],
    )


def _response(results: Iterable[ConfigResult]) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=result.error,
                error_message=result.message,
                resource_type=result.resource_type,
                resource_name=result.resource_name,
            )
            for result in results
        ]
    )
