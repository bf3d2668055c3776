"""DeleteAcls, versions 1 to 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import DeleteAcls
from odradek.handlers.acl_requests import access_refusal, read_filter
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.controller.decisions.acls import AclDeletion
    from odradek.handlers.context import RequestContext
    from odradek.security.acls.bindings import AclBinding


async def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    filters = [read_filter(each) for each in request.filters]
    refusal = access_refusal(context, Operation.ALTER)
    if refusal is not None:
        return DeleteAclsResponse(
            filter_results=[
                DeleteAclsFilterResult(error_code=refusal.error, error_message=refusal.message) for _ in filters
            ]
        )
    deletions = await context.services.controller.ask(DeleteAcls(filters))
    return DeleteAclsResponse(filter_results=[_filter_result(each) for each in deletions])


def _filter_result(deletion: AclDeletion) -> DeleteAclsFilterResult:
    error, message = deletion.refusal or (ErrorCode.NONE, None)
    return DeleteAclsFilterResult(
        error_code=error, error_message=message, matching_acls=[_matching(each) for each in deletion.bindings]
    )


def _matching(binding: AclBinding) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )
