"""ApiVersions, API 18: versions 0 to 4."""

from odradek.protocol.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Request, api_key=18, versions=(0, 4), flexible=3):
    client_software_name: str = string(versions="3+")
    client_software_version: str = string(versions="3+")


class ApiVersion(Struct):
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Struct):
    name: str = string(versions="3+")
    min_version: int = int16(versions="3+")
    max_version: int = int16(versions="3+")


class FinalizedFeatureKey(Struct):
    name: str = string(versions="3+")
    max_version_level: int = int16(versions="3+")
    min_version_level: int = int16(versions="3+")


class ApiVersionsResponse(Response, api_key=18, versions=(0, 4), flexible=3):
    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(versions="1+")
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, versions="3+", tag=0, tagged="3+")
    finalized_features_epoch: int = int64(versions="3+", default=-1, tag=1, tagged="3+")
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, versions="3+", tag=2, tagged="3+")
    zk_migration_ready: bool = boolean(versions="3+", tag=3, tagged="3+")
