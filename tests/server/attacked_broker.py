"""A broker with access control that peers attack: strangers on its SASL listener, and anonymous clients on its plain
one, who may read, write and create topics of every name, join every group, and nothing else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.security.scram_credentials import ScramMechanism, salted_password
from odradek.testing import RunningBroker
from tests.server.conftest import watched_broker
from tests.server.requests import create_topic
from tests.server.sasl_broker import ALICE, PROPERTIES
from tests.wire import WireClient

COMPACTED, HARMLESS, RECOMPRESSED = "compacted", "plain", "recompressed"
SCRAM_USER, SCRAM_PASSWORD, SALT = "carol", "carol secret", b"salt of sixteen."
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
_TOPIC_TYPE, _GROUP_TYPE, _CLIENT_METRICS, _LITERAL, _ALLOW = 2, 3, 16, 3, 3
_READ, _WRITE, _CREATE = 3, 4, 5


class Target(NamedTuple):
    plain_port: int
    sasl_port: int


class AttackedBroker(NamedTuple):
    process: RunningBroker
    target: Target
    admin: WireClient


@contextmanager
def attacked_broker(more: Mapping[str, str] = MappingProxyType({})) -> Iterator[AttackedBroker]:
    properties = {
        **PROPERTIES,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ALICE['sasl.username']}",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        **more,
    }
    with watched_broker(properties) as process:
        sasl_port, plain_port = process.ports.values()
        target = Target(plain_port, sasl_port)
        with WireClient(target.sasl_port) as admin:
            log_in(admin)
            _prepare(admin)
            yield AttackedBroker(process, target, admin)


def handshake(client: WireClient, mechanism: str) -> None:
    answer = client.call(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, 1)
    assert answer.error_code == ErrorCode.NONE


def authenticate(client: WireClient, token: bytes) -> SaslAuthenticateResponse:
    return client.call(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, 2)


def log_in(client: WireClient) -> None:
    """As the super user."""
    handshake(client, "PLAIN")
    token = f"\0{ALICE['sasl.username']}\0{ALICE['sasl.password']}".encode()
    assert authenticate(client, token).error_code == ErrorCode.NONE


def _prepare(admin: WireClient) -> None:
    """Topics, rules for anonymous clients, a user with SCRAM, a subscription of metrics."""
    create_topic(admin, HARMLESS)
    create_topic(admin, COMPACTED, cleanup_policy="compact")
    create_topic(admin, RECOMPRESSED, compression_type="gzip", retention_bytes="100000000")
    for topic in INTERNAL_TOPICS:
        create_topic(admin, topic)
    rules = [
        AclCreation(
            resource_type=resource_type,
            resource_name="*",
            resource_pattern_type=_LITERAL,
            principal="User:ANONYMOUS",
            host="*",
            operation=operation,
            permission_type=_ALLOW,
        )
        for resource_type, operation in (
            (_TOPIC_TYPE, _READ),
            (_TOPIC_TYPE, _WRITE),
            (_TOPIC_TYPE, _CREATE),
            (_GROUP_TYPE, _READ),
        )
    ]
    added = admin.call(CreateAclsRequest(creations=rules), CreateAclsResponse)
    assert [each.error_code for each in added.results] == [ErrorCode.NONE] * len(rules)
    salted = salted_password(ScramMechanism.SCRAM_SHA_512, SCRAM_PASSWORD, SALT, 4096)
    user = ScramCredentialUpsertion(name=SCRAM_USER, mechanism=2, iterations=4096, salt=SALT, salted_password=salted)
    stored = admin.call(AlterUserScramCredentialsRequest(upsertions=[user]), AlterUserScramCredentialsResponse, 0)
    assert stored.results[0].error_code == ErrorCode.NONE
    configs = [AlterableConfig(name="metrics", config_operation=0, value="*")]
    resource = AlterConfigsResource(resource_type=_CLIENT_METRICS, resource_name="everything", configs=configs)
    altered = admin.call(IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse)
    assert altered.responses[0].error_code == ErrorCode.NONE
