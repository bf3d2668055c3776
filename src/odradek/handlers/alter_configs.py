"""AlterConfigs, versions 0 to 2: replace all settings of a resource at once (superseded by IncrementalAlterConfigs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.config_decisions import ConfigReplacement
from odradek.handlers.config_access import split_by_access, without_refused
from odradek.handlers.own_settings import refuse_unusable
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.controller.results import ConfigResult
    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.alter_configs import AlterConfigsResource


async def prepare(
    request: AlterConfigsRequest, context: RequestContext
) -> tuple[AlterConfigsRequest, AlterConfigsResponse]:
    """On the broker that receives the request: what the controller is asked, and the refusals of this broker."""
    allowed, _ = split_by_access(context, request.resources, logs=False)  # the controller answers and logs the others
    refused = await refuse_unusable(context, [_change(resource) for resource in allowed])
    remaining = AlterConfigsRequest(
        resources=without_refused(request.resources, refused), validate_only=request.validate_only
    )
    return remaining, _response(refused)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    allowed, refused = split_by_access(context, request.resources)
    changes = [_change(resource) for resource in allowed]
    if context.services.forwarder is None:
        unusable = await refuse_unusable(context, changes)
        changes = without_refused(changes, unusable)
        refused += unusable
    results = await context.services.controller.alter_configs(changes, validate_only=request.validate_only)
    return _response(refused + results)


def _change(resource: AlterConfigsResource) -> ConfigReplacement:
    return ConfigReplacement(
        resource.resource_type,
        resource.resource_name,
        [(config.name, config.value) for config in resource.configs],
    )


def _response(results: Iterable[ConfigResult]) -> AlterConfigsResponse:
    return AlterConfigsResponse(
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
