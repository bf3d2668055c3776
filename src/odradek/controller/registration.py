"""The registration of a live broker in ZooKeeper, in Kafka's JSON (version 5). Pure.

`features` has the metadata levels that the broker knows. Two fields are our own. `odradek_directory` is the id of the
broker's first log directory: a broker that holds the lock of this directory knows that the process of the registration
has ended. `odradek_previous_epochs` are those of the broker's earlier registrations since which it cannot have
lost records (KIP-966), the newest last; `odradek_previous_epoch` is the last of them, or −1, for earlier versions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from odradek.configuration.listeners import Endpoint
from odradek.conventions.dataclass import dataclass
from odradek.metadata.entities import BrokerImage
from odradek.metadata.metadata_level import FIRST_LEVEL, NEWEST_LEVEL
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.host.zookeeper import NodeStat
    from odradek.security.protocols import SecurityProtocol

FORMAT = 5
LEVEL_FEATURE = "odradek.metadata"


@dataclass(frozen=True, slots=True)
class Registration:
    broker: BrokerImage
    directory_id: str
    previous_broker_epochs: Sequence[int]
    metadata_level: int = FIRST_LEVEL


def encode_registration(
    broker: BrokerImage,
    directory_id: str,
    previous_broker_epochs: Sequence[int],
    timestamp_ms: int,
    protocols: Mapping[str, SecurityProtocol],
) -> bytes:
    """`protocols` are those of the listeners."""
    first = next(iter(broker.endpoints.values()), Endpoint("", -1))
    return json.dumps(
        {
            "version": FORMAT,
            "host": first.host,
            "port": first.port,
            "jmx_port": -1,
            "timestamp": str(timestamp_ms),
            "endpoints": [_url(name, endpoint) for name, endpoint in broker.endpoints.items()],
            "listener_security_protocol_map": {name: protocols[name].value for name in broker.endpoints},
            "rack": broker.rack,
            "features": {LEVEL_FEATURE: {"min_version": FIRST_LEVEL, "max_version": NEWEST_LEVEL}},
            "odradek_directory": directory_id,
            "odradek_previous_epoch": previous_broker_epochs[-1] if previous_broker_epochs else NO_BROKER_EPOCH,
            "odradek_previous_epochs": [*previous_broker_epochs],
        }
    ).encode()


def decode_registration(node_id: int, data: bytes, stat: NodeStat) -> Registration:
    """The broker epoch is the transaction that created the node, which is higher at every registration."""
    try:
        fields = json.loads(data)
        endpoints = dict(_endpoint(url) for url in fields["endpoints"])
        broker = BrokerImage(node_id, endpoints, fields.get("rack"), broker_epoch=stat.created_zxid)
        last = int(fields.get("odradek_previous_epoch", NO_BROKER_EPOCH))
        previous = fields.get("odradek_previous_epochs", [] if last == NO_BROKER_EPOCH else [last])
        level = int(fields.get("features", {}).get(LEVEL_FEATURE, {}).get("max_version", FIRST_LEVEL))
        return Registration(broker, str(fields.get("odradek_directory", "")), tuple(map(int, previous)), level)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise MalformedMessage(f"the registration of broker {node_id} cannot be read: {problem!r}") from problem


def _url(name: str, endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{name}://{host}:{endpoint.port}"


def _endpoint(url: str) -> tuple[str, Endpoint]:
    name, _, address = url.partition("://")
    host, _, port = address.rpartition(":")
    return name, Endpoint(host.removeprefix("[").removesuffix("]"), int(port))
