"""AlterUserScramCredentials, version 0. Departure from Kafka: very long names and salts are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.scram_credentials import ScramDeletion, ScramUpsertion
from odradek.controller.requests import AlterScramCredentials
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from odradek.protocol.refusal import Refusal
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.controller.decisions.scram_credentials import ScramAlteration
    from odradek.handlers.context import RequestContext

_REFUSED = Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


async def handle(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    alterations: list[ScramAlteration] = [ScramDeletion(each.name, each.mechanism) for each in request.deletions]
    alterations += [
        ScramUpsertion(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
        for each in request.upsertions
    ]
    change = AlterScramCredentials(alterations)
    if context.allows_on_cluster(Operation.ALTER):
        results = await context.services.controller.ask(change)
    else:
        results = change.refuse(_REFUSED)
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=each.user, error_code=each.error, error_message=each.message)
            for each in results
        ]
    )
