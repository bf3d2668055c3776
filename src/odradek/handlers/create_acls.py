"""CreateAcls, versions 1 to 3. A rule that exists is answered like a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import CreateAcls
from odradek.handlers.acl_requests import access_refusal, read_code
from odradek.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.protocol.refusal import Refusal


async def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    bindings = [_binding(creation) for creation in request.creations]
    refusal = access_refusal(context, Operation.ALTER)
    if refusal is not None:
        return CreateAclsResponse(results=[_result(refusal) for _ in bindings])
    results = await context.services.controller.ask(CreateAcls(bindings))
    return CreateAclsResponse(results=[_result(result) for result in results])


def _binding(creation: AclCreation) -> AclBinding:
    return AclBinding(
        read_code(ResourceType, creation.resource_type),
        creation.resource_name,
        read_code(PatternType, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        read_code(Operation, creation.operation),
        read_code(Permission, creation.permission_type),
    )


def _result(refusal: Refusal | None) -> AclCreationResult:
    if refusal is None:
        return AclCreationResult(error_message=None)
    return AclCreationResult(error_code=refusal.error, error_message=refusal.message)
