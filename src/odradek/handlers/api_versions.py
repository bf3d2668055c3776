"""ApiVersions, versions 0 to 4: what this broker speaks, derived from the registry.

A version that is too new is answered by the dispatcher in the format of version 0 (KIP-511).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.handlers.context import RequestContext
    from odradek.handlers.registry import Api

FIRST_VERSION_WITH_SOFTWARE_NAME = 3
_LEGAL_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class AdvertisedApis:
    """The answer to everybody's first question."""

    def __init__(self, apis: Iterable[Api]) -> None:
        self._keys = [
            ApiVersion(api_key=api.key, min_version=api.advertised_min_version, max_version=api.max_version)
            for api in sorted(apis, key=lambda api: api.key)
        ]

    def supported(self) -> ApiVersionsResponse:
        return ApiVersionsResponse(api_keys=self._keys, finalized_features_epoch=0)

    def unsupported_version(self) -> ApiVersionsResponse:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=self._keys)


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE_NAME and not (
        _LEGAL_SOFTWARE_NAME.fullmatch(request.client_software_name)
        and _LEGAL_SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return context.services.advertised_apis.supported()
