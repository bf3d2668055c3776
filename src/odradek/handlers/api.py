"""One Kafka API as the broker serves it, and the list of APIs that ApiVersions returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odradek.metadata.features import SUPPORTED_FEATURES
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from odradek.metadata.image import MetadataImage
    from odradek.protocol.schema import Request, Response

FIRST_VERSION_WITH_LEVEL_0 = 4
"""Clients of earlier versions of ApiVersions cannot read features that support level 0 (KAFKA-17492)."""


@dataclass(frozen=True, slots=True)
class Api:
    """Message tables, handler, the versions that are served and the smallest that is advertised."""

    key: int
    name: str
    request: type[Request]
    response: type[Response]
    handle: Callable[[Any, Any], Any]
    min_version: int
    max_version: int
    advertised_min_version: int
    is_forwarded: bool = False
    """Whether the controller decides, so that other brokers forward the request to it."""
    prepare: Callable[[Any, Any], Awaitable[tuple[Request, Response]]] | None = None
    """Splits a forwarded request into the part for the controller and the response to what this broker refuses."""
    is_between_brokers: bool = False
    """Such an API is served in a cluster, and not advertised."""
    is_own: bool = False
    """Whether Kafka has no such API. It is advertised to Odradek's own clients only."""
    is_telemetry: bool = False
    """Such an API is advertised while a subscription to clients' metrics exists: clients that find it use it."""


class AdvertisedApis:
    """The ApiVersions responses of this broker."""

    def __init__(self, apis: Iterable[Api]) -> None:
        advertised = [api for api in sorted(apis, key=lambda api: api.key) if not api.is_between_brokers]
        self._advertised = [(api, _versions(api)) for api in advertised]

    def supported(
        self, image: MetadataImage, version: int, *, is_own_client: bool, has_telemetry: bool
    ) -> ApiVersionsResponse:
        """The response in this version of ApiVersions. Features of level 0 are disabled, and not listed among those in
        use; the epoch is the version of the metadata, so that clients take the levels of the newest."""
        levels = {name: image.feature_level(name) for name in SUPPORTED_FEATURES}
        return ApiVersionsResponse(
            api_keys=self._keys(is_own_client=is_own_client, has_telemetry=has_telemetry),
            supported_features=[
                SupportedFeatureKey(name=name, min_version=supported.smallest, max_version=supported.largest)
                for name, supported in SUPPORTED_FEATURES.items()
                if supported.smallest > 0 or version >= FIRST_VERSION_WITH_LEVEL_0
            ],
            finalized_features_epoch=image.version,
            finalized_features=[
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in levels.items()
                if level > 0
            ],
        )

    def unsupported_version(self) -> ApiVersionsResponse:
        keys = self._keys(is_own_client=False, has_telemetry=False)
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys)

    def _keys(self, *, is_own_client: bool, has_telemetry: bool) -> list[ApiVersion]:
        return [
            versions
            for api, versions in self._advertised
            if (is_own_client or not api.is_own) and (has_telemetry or not api.is_telemetry)
        ]


def _versions(api: Api) -> ApiVersion:
    return ApiVersion(api_key=api.key, min_version=api.advertised_min_version, max_version=api.max_version)
