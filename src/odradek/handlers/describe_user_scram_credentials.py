"""DescribeUserScramCredentials, version 0: mechanisms and iterations of users, never salts or keys."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.metadata.users import ScramKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from odradek.security.authorizer import Operation
from odradek.security.scram_credentials import ScramMechanism

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.metadata.image import MetadataImage

_REFUSED = "Cluster authorization failed."
_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_MISSING = "Attempt to describe a user credential that does not exist: "


def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    if not context.allows_on_cluster(Operation.DESCRIBE):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeUserScramCredentialsResponse(error_code=error, error_message=_REFUSED)
    image = context.services.image
    counts = Counter(user.name for user in request.users or ())
    if not counts:
        counts = Counter({key.user: 1 for key in image.users.scram_credentials})
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_describe(user, count, image) for user, count in counts.items()]
    )


def _describe(user: str, count: int, image: MetadataImage) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=_TWICE + user
        )
    found = [
        CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        for mechanism in ScramMechanism
        if (credential := image.users.scram_credentials.get(ScramKey(user, mechanism))) is not None
    ]
    if not found:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=_MISSING + user
        )
    return DescribeUserScramCredentialsResult(user=user, error_message=None, credential_infos=found)
