"""ApiVersions, versions 0 to 4: the APIs and versions of this broker, derived from the registry.

APIs of Odradek's own are listed for clients that name themselves `odradek` only: other clients see those of Kafka.
Those of client telemetry are listed while a subscription exists, where Kafka lists them if a plugin receives metrics.
A version that is too new is answered by the dispatcher in the format of version 0 (KIP-511).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.handlers.authentication_steps import fail_authentication
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_SOFTWARE_NAME = 3
LONGEST_SOFTWARE_NAME = 256  # kept of a name, for telemetry
OWN_SOFTWARE_NAME = "odradek"
_LEGAL_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(
    request: ApiVersionsRequest, context: RequestContext
) -> ApiVersionsResponse | Awaitable[ApiVersionsResponse]:
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE_NAME and not (
        _LEGAL_SOFTWARE_NAME.fullmatch(request.client_software_name)
        and _LEGAL_SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE_NAME:
        context.connection.software_name = request.client_software_name[:LONGEST_SOFTWARE_NAME]
        context.connection.software_version = request.client_software_version[:LONGEST_SOFTWARE_NAME]
    if context.connection.authentication is not None:
        failure = context.connection.authentication.ask_for_versions()
        if failure is not None:
            refused = ApiVersionsResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
            return fail_authentication(refused, failure, context.connection, context.services)
    is_own_client = (
        context.api_version >= FIRST_VERSION_WITH_SOFTWARE_NAME and request.client_software_name == OWN_SOFTWARE_NAME
    )
    telemetry = context.services.telemetry
    return context.services.advertised_apis.supported(
        context.services.image,
        context.api_version,
        is_own_client=is_own_client,
        has_telemetry=telemetry is not None and telemetry.has_subscriptions,
    )
