"""FindCoordinator, API 10: versions 0 to 6."""

from odradek.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Request, api_key=10, versions=(0, 6), flexible=3):
    key: str = string(versions="0-3")
    key_type: int = int8(versions="1+")
    coordinator_keys: list[str] = array(string(), versions="4+")


class Coordinator(Struct):
    key: str = string(versions="4+")
    node_id: int = int32(versions="4+")
    host: str = string(versions="4+")
    port: int = int32(versions="4+")
    error_code: int = int16(versions="4+")
    error_message: str | None = string(versions="4+", nullable="4+")


class FindCoordinatorResponse(Response, api_key=10, versions=(0, 6), flexible=3):
    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="1-3")
    node_id: int = int32(versions="0-3")
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")
    coordinators: list[Coordinator] = array(Coordinator, versions="4+")
