"""IncrementalAlterConfigs, versions 0 and 1: set, delete, append to or subtract from single settings (KIP-339)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.configs import ConfigAlteration, ConfigOperation
from odradek.handlers.config_changes import alter, encode_results, refuse_own
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.controller.decisions.request_results import ConfigResult
    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.incremental_alter_configs import AlterConfigsResource


async def prepare(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> tuple[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse]:
    remaining, refused = await refuse_own(request, context, _change)
    return remaining, _response(refused)


async def handle(request: IncrementalAlterConfigsRequest, context: RequestContext) -> IncrementalAlterConfigsResponse:
    return _response(await alter(request, context, _change))


def _change(resource: AlterConfigsResource) -> ConfigAlteration:
    return ConfigAlteration(
        resource.resource_type,
        resource.resource_name,
        [ConfigOperation(config.name, config.config_operation, config.value) for config in resource.configs],
    )


def _response(results: Iterable[ConfigResult]) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(responses=encode_results(results, AlterConfigsResourceResponse))
