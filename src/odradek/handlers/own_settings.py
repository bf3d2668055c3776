"""Settings of a broker are validated by that broker, with its own properties file and its own key stores, as in Kafka.

A change of one broker's settings must be sent to that broker. The broker that receives a request refuses what it
cannot use; the rest goes to the controller, which does not know the files and the static settings of other brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigError, ConfigResourceType
from odradek.controller.decisions.configs import (
    ConfigReplacement,
    decide_alteration,
    decide_replacement,
    repeated_resources,
)
from odradek.controller.decisions.request_results import ConfigResult
from odradek.metadata.image import merge
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from odradek.controller.decisions.configs import ConfigAlteration
    from odradek.handlers.context import RequestContext

    ConfigChange: TypeAlias = ConfigAlteration | ConfigReplacement


async def refuse_unusable(context: RequestContext, changes: Sequence[ConfigChange]) -> list[ConfigResult]:
    """The refusals of the changes that this broker cannot use, or that are another broker's."""
    repeated = repeated_resources(changes)  # the controller refuses all of them
    results = []
    for change in changes:
        resource = change.resource_type, change.resource_name
        if change.resource_type == ConfigResourceType.BROKER and resource not in repeated:
            refusal = await _refuse(context, change)
            if refusal is not None:
                results.append(
                    ConfigResult(
                        resource_type=change.resource_type,
                        resource_name=change.resource_name,
                        error=refusal.error,
                        message=refusal.message,
                    )
                )
    return results


async def _refuse(context: RequestContext, change: ConfigChange) -> Refusal | None:
    services = context.services
    config, name = services.config, change.resource_name
    if name and name != str(config.node_id):
        if not name.removeprefix("-").isdecimal():
            return Refusal(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        reason = f"Unexpected broker id, expected {config.node_id}, but received {name}"
        return Refusal(ErrorCode.INVALID_REQUEST, reason)
    if isinstance(change, ConfigReplacement):
        decided = decide_replacement(change, services.image, config)
    else:
        decided = decide_alteration(change, services.image, config)
    if isinstance(decided, Refusal):
        return decided
    if services.check_settings is None or not name:
        return None
    values = merge(config.dynamic_broker_values, decided.values)
    try:
        altered = config.with_dynamic(config.dynamic_default_values, values)
    except ConfigError:  # another setting, which is stored and not used
        return None
    unusable = await services.check_settings(altered)
    return None if unusable is None else Refusal(ErrorCode.INVALID_REQUEST, unusable)
