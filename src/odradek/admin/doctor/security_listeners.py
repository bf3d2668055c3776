"""The listeners of brokers, and connections to them as everybody could make them: the certificate, the versions of TLS,
rights without credentials. A probe asks and changes nothing."""

from __future__ import annotations

import datetime
import re
import socket
import ssl
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.admin.cluster import operations_of
from odradek.admin.security import wire_security
from odradek.admin.wire import KeptConnections, SecuredAddress
from odradek.conventions.addresses import is_loopback
from odradek.conventions.failures import Failure
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.security.tls.distinguished_names import MalformedCertificate
from odradek.security.tls.validity import validity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.admin.broker_requests import KnownBroker
    from odradek.admin.cluster import Cluster

TIMEOUT_S = 5.0
VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
UNVERIFIED = {"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"}
ALL_CIPHERS = "ALL:@SECLEVEL=0"  # old versions of TLS need what OpenSSL refuses by default
_LISTENER = re.compile(r"\s*(\w+)://(?:\[([^\]]*)\]|([^:/]*)):(\d+)\s*", re.ASCII)
_WILDCARDS = frozenset({"", "0.0.0.0", "::", "0:0:0:0:0:0:0:0"})


@dataclass(frozen=True, slots=True)
class ListenerFacts:
    """A listener of a broker: its protocol, the host that it is bound to, and the address that clients use."""

    broker_id: int
    name: str
    protocol: str  # PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    bound_host: str
    host: str
    port: int
    settings: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    is_of_controllers: bool = False

    @property
    def place(self) -> str:
        return f"broker {self.broker_id}, {self.name} ({self.protocol}) at {self.host}:{self.port}"

    @property
    def is_encrypted(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    @property
    def is_exposed(self) -> bool:
        """Whether other machines can connect: it is not bound to a loopback address."""
        return not is_loopback(self.bound_host)

    @property
    def is_authenticating(self) -> bool:
        return self.has_sasl or (self.protocol == "SSL" and self._setting("ssl.client.auth", "none") == "required")

    @property
    def is_between_brokers(self) -> bool:
        name = self.settings.get("inter.broker.listener.name")
        return self.name == (name or self.settings.get("security.inter.broker.protocol", "PLAINTEXT")).upper()

    @property
    def mechanisms(self) -> list[str]:
        return [each.strip() for each in self._setting("sasl.enabled.mechanisms", "").split(",") if each.strip()]

    def _setting(self, name: str, default: str) -> str:
        """The value for this listener, or for all."""
        own = self.settings.get(f"listener.name.{self.name.lower()}.{name}")
        return own if own is not None else self.settings.get(name, default)


@dataclass(frozen=True, slots=True)
class TlsFacts:
    """What a connection to a TLS listener has shown."""

    listener: ListenerFacts
    days_left: float | None  # of the certificate; None if it could not be read
    versions: tuple[str, ...]  # that the listener accepts
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AnonymousRights:
    """What a client without credentials may do on a listener."""

    listener: ListenerFacts
    cluster_operations: tuple[str, ...]
    topics: Mapping[str, tuple[str, ...]]  # operations of each topic that it sees


def listeners_of(broker: KnownBroker, settings: Mapping[str, str]) -> list[ListenerFacts]:
    """From the settings, with the address that clients use. A port that the kernel chose is known for a broker's only
    listener."""
    bound = _parse(settings.get("listeners", ""))
    advertised = _parse(settings.get("advertised.listeners", ""))
    entries = (entry.rpartition(":") for entry in settings.get("listener.security.protocol.map", "").split(","))
    protocols = {name.strip().upper(): protocol.strip().upper() for name, _, protocol in entries}
    controllers = {each.strip().upper() for each in settings.get("controller.listener.names", "").split(",")}
    found = []
    for name, (bound_host, bound_port) in bound.items():
        host, port = advertised.get(name, (bound_host, bound_port))
        if host in _WILDCARDS:
            host = broker.host
        if port == 0 and len(bound) == 1:
            host, port = broker.address
        protocol, is_of_controllers = protocols.get(name, name), name in controllers
        found.append(
            ListenerFacts(broker.broker_id, name, protocol, bound_host, host, port, settings, is_of_controllers)
        )
    return found


def _parse(text: str) -> dict[str, tuple[str, int]]:
    found = {}
    for entry in text.split(","):
        if match := _LISTENER.fullmatch(entry):
            name, ipv6, host, port = match.groups()
            found[name.upper()] = (host if ipv6 is None else ipv6, int(port))
    return found


def tls_facts(cluster: Cluster, listener: ListenerFacts) -> TlsFacts:
    """One handshake for each version, with the certificate of this client if it has one."""
    accepted: list[str] = []
    certificate: bytes | None = None
    reason: str | None = None
    for name, version in VERSIONS.items():
        try:
            found = _handshake(cluster.properties, listener, version)
        except (OSError, Failure) as error:
            reason = str(error) if isinstance(error, Failure) else error.strerror or str(error)
            continue
        accepted.append(name)
        certificate = found or certificate
    if certificate is None:
        return TlsFacts(listener, None, tuple(accepted), reason)
    try:
        _begin, end = validity(certificate)
    except MalformedCertificate as problem:
        return TlsFacts(listener, None, tuple(accepted), str(problem))
    left = end - datetime.datetime.now(datetime.UTC)
    return TlsFacts(listener, left.total_seconds() / 86_400, tuple(accepted))


def _handshake(properties: Mapping[str, str], listener: ListenerFacts, version: ssl.TLSVersion) -> bytes | None:
    """The certificate of the listener."""
    security = wire_security({**properties, **UNVERIFIED})
    assert security is not None
    assert security.context is not None
    context = security.context
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the versions that are looked for
        context.minimum_version = version
        context.maximum_version = version
    if version < ssl.TLSVersion.TLSv1_2:
        context.set_ciphers(ALL_CIPHERS)
    with (
        socket.create_connection((listener.host, listener.port), timeout=TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=listener.host) as secured,
    ):
        return secured.getpeercert(binary_form=True)


def anonymous_rights(listener: ListenerFacts) -> AnonymousRights | None:
    """None if the listener does not serve clients without credentials, or does not answer."""
    security = wire_security(UNVERIFIED) if listener.is_encrypted else None
    address = SecuredAddress(listener.host, listener.port, security)
    described = DescribeClusterRequest(include_cluster_authorized_operations=True)
    listed = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
    ask = KeptConnections()
    try:
        cluster = ask(address, described, DescribeClusterResponse, 0, TIMEOUT_S)
        topics = ask(address, listed, MetadataResponse, 9, TIMEOUT_S).topics
    except Failure:
        return None
    return AnonymousRights(
        listener,
        _names(cluster.cluster_authorized_operations) if not cluster.error_code else (),
        {each.name or "": _names(each.topic_authorized_operations) for each in topics if not each.error_code},
    )


def _names(bits: int) -> tuple[str, ...]:
    return tuple(each.name for each in sorted(operations_of(bits) or ()))
