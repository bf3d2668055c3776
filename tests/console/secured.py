"""A broker with users and access rules, for tests of the console's login."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Producer

from odradek.admin.acls import Access, Selection, Subjects, bindings, create
from odradek.admin.cluster import Cluster
from odradek.admin.users import set_password
from odradek.security.acls.bindings import PatternType, Permission
from odradek.security.authorizer import Operation
from tests.server.sasl_broker import sasl_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

MECHANISM = "SCRAM-SHA-512"
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": MECHANISM}
PASSWORDS = {"admin": "admin's secret", "ann": "ann's secret", "ben": "ben's secret"}


class SecuredCluster(NamedTuple):
    """`ann` reads `ann-orders` in the group `ann-group`, and sees `ann-seen`; `ben` reads and writes
    `ben-orders`; `admin` may do all."""

    address: str
    plain_address: str

    def as_super_user(self) -> Cluster:
        return Cluster(self.plain_address, {})


@contextmanager
def secured_cluster(**properties: str) -> Iterator[SecuredCluster]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        **properties,
    }
    with sasl_broker(**settings) as running:
        secured = SecuredCluster(f"127.0.0.1:{running.sasl_port}", f"127.0.0.1:{running.plain_port}")
        cluster = secured.as_super_user()
        for name, password in PASSWORDS.items():
            set_password(cluster, name, password, {MECHANISM: 4096})
        for topic in ("ann-orders", "ben-orders", "ann-seen"):
            assert cluster.create_topic(topic, 1, 1)
        producer = Producer({"bootstrap.servers": secured.plain_address})
        for topic in ("ann-orders", "ben-orders", "ann-seen"):
            producer.produce(topic, f"record of {topic}")
        assert producer.flush(60) == 0
        allow(cluster, "User:ann", Selection(topics=("ann-orders",), groups=("ann-group",)), Access(consumer=True))
        allow(cluster, "User:ann", Selection(topics=("ann-seen",)), Access((Operation.DESCRIBE,)))
        both = Access((Operation.READ, Operation.WRITE, Operation.DESCRIBE))
        allow(cluster, "User:ben", Selection(topics=("ben-orders",)), both)
        yield secured


def token_properties(issuer: str) -> dict[str, str]:
    """Of a broker that also accepts the tokens of an OIDC provider."""
    return {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"{issuer}/keys",
        "sasl.oauthbearer.allowed.urls": f"{issuer}/keys",
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": issuer,
    }


def allow(cluster: Cluster, principal: str, selection: Selection, access: Access) -> None:
    subjects = [Subjects((principal,), (), Permission.ALLOW)]
    create(cluster, bindings(selection, access, subjects, PatternType.LITERAL))
