"""AlterConfigs, versions 0 to 2: replace all settings of a resource at once (superseded by IncrementalAlterConfigs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.configs import ConfigReplacement
from odradek.handlers.config_changes import alter, encode_results, refuse_own
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.controller.decisions.request_results import ConfigResult
    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.alter_configs import AlterConfigsResource


async def prepare(
    request: AlterConfigsRequest, context: RequestContext
) -> tuple[AlterConfigsRequest, AlterConfigsResponse]:
    remaining, refused = await refuse_own(request, context, _change)
    return remaining, _response(refused)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    return _response(await alter(request, context, _change))


def _change(resource: AlterConfigsResource) -> ConfigReplacement:
    return ConfigReplacement(
        resource.resource_type,
        resource.resource_name,
        [(config.name, config.value) for config in resource.configs],
    )


def _response(results: Iterable[ConfigResult]) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=encode_results(results, AlterConfigsResourceResponse))
