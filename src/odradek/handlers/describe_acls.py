"""DescribeAcls, versions 1 to 3: answered from the metadata of this broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.acl_requests import access_refusal, read_filter
from odradek.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.security.acls.bindings import AclBinding, PatternType
    from odradek.security.authorizer import ResourceType


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    acl_filter = read_filter(request)
    refusal = access_refusal(context, Operation.DESCRIBE)
    if refusal is not None:
        return DescribeAclsResponse(error_code=refusal.error, error_message=refusal.message)
    found: dict[tuple[ResourceType, str, PatternType], list[AclBinding]] = {}
    for binding in context.services.image.acls.matching(acl_filter):
        pattern = binding.resource_type, binding.resource_name, binding.pattern_type
        found.setdefault(pattern, []).append(binding)
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[_describe(binding) for binding in bindings],
            )
            for (resource_type, name, pattern_type), bindings in found.items()
        ],
    )


def _describe(binding: AclBinding) -> AclDescription:
    return AclDescription(
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )
