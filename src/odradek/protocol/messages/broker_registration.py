"""BrokerRegistration, API 62: versions 0 to 4."""

from odradek.protocol.schema import (
    UUID,
    Request,
    Response,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


class Feature(Struct):
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class BrokerRegistrationRequest(Request, api_key=62, versions=(0, 4), flexible=0):
    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: UUID = uuid()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(nullable="0+")
    is_migrating_zk_broker: bool = boolean(versions="1+")
    log_dirs: list[UUID] = array(uuid(), versions="2+")
    previous_broker_epoch: int = int64(versions="3+", default=-1)


class BrokerRegistrationResponse(Response, api_key=62, versions=(0, 4), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)
