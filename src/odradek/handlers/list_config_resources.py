"""ListConfigResources, versions 0 and 1: which resources have settings (KIP-1142); version 0 lists metrics only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.handlers.context import RequestContext

LISTABLE = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
)


def handle(request: ListConfigResourcesRequest, context: RequestContext) -> ListConfigResourcesResponse:
    if not context.allows_on_cluster(Operation.DESCRIBE_CONFIGS):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if context.api_version == 0:
        wanted: set[int] = {ConfigResourceType.CLIENT_METRICS}
    else:
        wanted = set(request.resource_types) or set(LISTABLE)
        if not wanted <= set(LISTABLE):
            return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in LISTABLE
            if kind in wanted
            for name in _names(kind, context)
        ]
    )


def _names(kind: ConfigResourceType, context: RequestContext) -> Iterable[str]:
    image = context.services.image
    match kind:
        case ConfigResourceType.TOPIC:
            return image.topics
        case ConfigResourceType.BROKER | ConfigResourceType.BROKER_LOGGER:
            return [str(node_id) for node_id in image.brokers]
        case _:
            return [resource.name for resource in image.configs if resource.type is kind]
