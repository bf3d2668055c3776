"""The node of a live broker has Kafka's JSON."""

import json

import pytest

from odradek.configuration.listeners import Endpoint
from odradek.controller.registration import decode_registration, encode_registration
from odradek.host.zookeeper import NodeStat
from odradek.metadata.entities import BrokerImage
from odradek.metadata.metadata_level import FIRST_LEVEL, NEWEST_LEVEL
from odradek.protocol.malformed import MalformedMessage
from odradek.security.protocols import SecurityProtocol

ENDPOINTS = {"PLAINTEXT": Endpoint("127.0.0.1", 9092), "INSIDE": Endpoint("::1", 9093)}
PROTOCOLS = {"PLAINTEXT": SecurityProtocol.PLAINTEXT, "INSIDE": SecurityProtocol.SASL_SSL}
STAT = NodeStat(created_zxid=42, modified_zxid=42, version=0, ephemeral_owner=7)


def test_registration_is_read_back_with_its_epoch() -> None:
    data = encode_registration(BrokerImage(3, ENDPOINTS, "r1"), "directory", [12, 17], 1000, PROTOCOLS)
    registration = decode_registration(3, data, STAT)
    assert registration.broker == BrokerImage(3, ENDPOINTS, "r1", broker_epoch=42)
    assert (registration.directory_id, registration.previous_broker_epochs) == ("directory", (12, 17))
    assert registration.metadata_level == NEWEST_LEVEL


def test_fields_are_those_of_kafka() -> None:
    fields = json.loads(encode_registration(BrokerImage(3, ENDPOINTS), "directory", [12, 17], 1000, PROTOCOLS))
    assert fields["version"] == 5
    assert (fields["host"], fields["port"], fields["timestamp"]) == ("127.0.0.1", 9092, "1000")
    assert fields["endpoints"] == ["PLAINTEXT://127.0.0.1:9092", "INSIDE://[::1]:9093"]
    assert fields["listener_security_protocol_map"] == {"PLAINTEXT": "PLAINTEXT", "INSIDE": "SASL_SSL"}


def test_registration_of_apache_kafka_can_be_read() -> None:
    data = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://broker:9092"],"jmx_port":-1,"port":9092,"host":"broker","version":5,'
        b'"timestamp":"1700000000000"}'
    )
    registration = decode_registration(1, data, STAT)
    assert registration.broker.endpoints == {"PLAINTEXT": Endpoint("broker", 9092)}
    assert (registration.directory_id, registration.previous_broker_epochs) == ("", ())
    assert registration.metadata_level == FIRST_LEVEL


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b'{"endpoints": 1}', b'{"endpoints": ["x"]}', b'{"endpoints": [], "features": 1}']
)
def test_other_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_registration(1, data, STAT)
