"""One Kafka API as the broker serves it, and the list of APIs that ApiVersions returns."""

from __future__ import annotations

import re
import sys
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
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from odradek.metadata.image import MetadataImage
    from odradek.protocol.schema import Request, Response

FIRST_VERSION_WITH_LEVEL_0 = 4
"""Clients of earlier versions of ApiVersions cannot read features that support level 0 (KAFKA-17492)."""


class Api:
    """One API: the versions that are served and the smallest that is advertised, its message tables and its handler.

    The tables and the handler are imported when the first request needs them, or by `load`: they would be a third of
    a broker's start.
    """

    __slots__ = (
        "advertised_min_version",
        "audit",
        "handle",
        "is_between_brokers",
        "is_forwarded",
        "is_own",
        "is_telemetry",
        "key",
        "load",
        "max_version",
        "min_version",
        "module",
        "name",
        "prepare",
        "request",
        "response",
    )
    request: type[Request]
    response: type[Response]
    handle: Callable[[Any, Any], Any]
    prepare: Callable[[Any, Any], Awaitable[tuple[Request, Response]]] | None
    """Splits a forwarded request into the part for the controller and the response to what this broker refuses."""

    def __init__(
        self,
        key: int,
        name: str,
        min_version: int,
        max_version: int,
        *,
        advertised_min_version: int | None = None,
        is_forwarded: bool = False,
        is_between_brokers: bool = False,
        is_own: bool = False,
        is_telemetry: bool = False,
        audit: str = "",
        load: Callable[[Api], None],
    ) -> None:
        self.key = key
        self.name = name
        self.module = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        """The name of the file of the handler, and of that of the message tables."""
        self.min_version = min_version
        self.max_version = max_version
        self.advertised_min_version = min_version if advertised_min_version is None else advertised_min_version
        self.is_forwarded = is_forwarded
        """Whether the controller decides, so that other brokers forward the request to it."""
        self.is_between_brokers = is_between_brokers
        """Such an API is served in a cluster, and not advertised."""
        self.is_own = is_own
        """Whether Kafka has no such API. It is advertised to Odradek's own clients only."""
        self.is_telemetry = is_telemetry
        """Such an API is advertised while a subscription to clients' metrics exists: clients that find it use it."""
        self.audit = audit
        """The function of `audited_actions` that says what a request has done."""
        self.load = load
        """Sets the tables and the handler."""

    def __getattr__(self, name: str) -> Any:
        """Called for an attribute that is not set: those of the handler before it is loaded."""
        if name not in ("request", "response", "handle", "prepare"):
            raise AttributeError(name)
        self.load(self)
        return getattr(self, name)

    @property
    def is_loaded(self) -> bool:
        return f"odradek.handlers.{self.module}" in sys.modules


class FlexibleVersions(dict[int, "int | None"]):
    """By API key, the first version whose header is flexible. Filled by the requests that come."""

    def __init__(self, apis: Mapping[int, Api]) -> None:
        self._apis = apis

    def __missing__(self, key: int) -> int | None:
        api = self._apis.get(key)
        if api is None:
            return None
        self[key] = flexible_from = api.request.flexible_from
        return flexible_from


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
