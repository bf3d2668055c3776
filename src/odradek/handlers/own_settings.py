"""Changes of this broker's own settings that it cannot use, such as a keystore that cannot be read, are refused.

Only for requests that this broker handles itself: what is forwarded to a controller is checked there without files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigError, ConfigResourceType
from odradek.controller.config_decisions import AlterOperation
from odradek.controller.results import ConfigResult
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.config_decisions import ConfigAlteration
    from odradek.handlers.context import RequestContext


async def refuse_unusable(
    context: RequestContext, changes: Iterable[ConfigAlteration]
) -> tuple[list[ConfigAlteration], list[ConfigResult]]:
    """The changes that may be decided, and the refusals of the others."""
    check, config = context.services.check_settings, context.services.config
    kept: list[ConfigAlteration] = []
    refused: list[ConfigResult] = []
    for change in changes:
        altered = _altered_config(change, config)
        reason = await check(altered) if check is not None and altered is not None else None
        if reason is None:
            kept.append(change)
        else:
            refused.append(
                ConfigResult(
                    resource_type=change.resource_type,
                    resource_name=change.resource_name,
                    error=ErrorCode.INVALID_REQUEST,
                    message=reason,
                )
            )
    return kept, refused


def _altered_config(change: ConfigAlteration, config: BrokerConfig) -> BrokerConfig | None:
    """This broker's configuration after the change; None if the change is another's, or is refused anyway."""
    if change.resource_type != ConfigResourceType.BROKER or change.resource_name != str(config.node_id):
        return None
    values = dict(config.dynamic_broker_values)
    for each in change.operations:
        if each.operation == AlterOperation.SET and each.value is not None:
            values[each.name] = each.value
        elif each.operation == AlterOperation.DELETE:
            values.pop(each.name, None)
    try:
        return config.with_dynamic(config.dynamic_default_values, values)
    except ConfigError:
        return None
