"""The common part of AlterConfigs and IncrementalAlterConfigs: who may change settings, what the receiving broker
refuses itself, and the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.controller.requests import AlterConfigs
from odradek.handlers.config_access import split_by_access, without_refused
from odradek.handlers.own_settings import refuse_unusable
from odradek.protocol.messages.alter_configs import AlterConfigsRequest
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.controller.decisions.configs import ConfigAlteration, ConfigReplacement
    from odradek.controller.decisions.request_results import ConfigResult
    from odradek.handlers.context import RequestContext

AnyRequest = TypeVar("AnyRequest", AlterConfigsRequest, IncrementalAlterConfigsRequest)
Result = TypeVar("Result")


async def refuse_own(
    request: AnyRequest, context: RequestContext, change: Callable[[Any], ConfigAlteration | ConfigReplacement]
) -> tuple[AnyRequest, list[ConfigResult]]:
    """On the broker that receives the request: what the controller is asked, and the refusals of this broker."""
    allowed, _ = split_by_access(context, request.resources, logs=False)  # the controller answers and logs the others
    refused = await refuse_unusable(context, [change(resource) for resource in allowed])
    remaining = type(request)(
        resources=without_refused(request.resources, refused), validate_only=request.validate_only
    )
    return remaining, refused


async def alter(
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    context: RequestContext,
    change: Callable[[Any], ConfigAlteration | ConfigReplacement],
) -> list[ConfigResult]:
    allowed, refused = split_by_access(context, request.resources)
    changes = [change(resource) for resource in allowed]
    if context.services.forwarder is None:
        unusable = await refuse_unusable(context, changes)
        changes = without_refused(changes, unusable)
        refused += unusable
    alteration = AlterConfigs(changes, validate_only=request.validate_only)
    return refused + await context.services.controller.ask(alteration)


def encode_results(results: Iterable[ConfigResult], encoded: Callable[..., Result]) -> list[Result]:
    return [
        encoded(
            error_code=result.error,
            error_message=result.message,
            resource_type=result.resource_type,
            resource_name=result.resource_name,
        )
        for result in results
    ]
