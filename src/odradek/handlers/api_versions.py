"""ApiVersions, versions 0 to 4: the APIs and versions of this broker, derived from the registry.

A version that is too new is answered by the dispatcher in the format of version 0 (KIP-511).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_SOFTWARE_NAME = 3
_LEGAL_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE_NAME and not (
        _LEGAL_SOFTWARE_NAME.fullmatch(request.client_software_name)
        and _LEGAL_SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if context.connection.authentication is not None:
        context.connection.authentication.versions_answered()
    return context.services.advertised_apis.supported()
