"""Connections to listeners as everybody could make them: the certificate, the versions of TLS, rights without
credentials. A probe asks and changes nothing."""

from __future__ import annotations

import datetime
import socket
import ssl
import warnings
from typing import TYPE_CHECKING

from odradek.admin.doctor.security.facts import AnonymousRights, TlsFacts
from odradek.admin.security import wire_security
from odradek.admin.wire import SecuredAddress, call
from odradek.conventions.failures import Failure
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.security.authorizer import Operation
from odradek.security.tls.distinguished_names import MalformedCertificate
from odradek.security.tls.validity import validity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.admin.cluster import Cluster
    from odradek.admin.doctor.security.facts import ListenerFacts

TIMEOUT_S = 5.0
VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
UNVERIFIED = {"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"}
ALL_CIPHERS = "ALL:@SECLEVEL=0"  # old versions of TLS need what OpenSSL refuses by default


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
    try:
        cluster = call(address, described, DescribeClusterResponse, 0, TIMEOUT_S)
        topics = call(address, listed, MetadataResponse, 9, TIMEOUT_S).topics
    except Failure:
        return None
    return AnonymousRights(
        listener,
        _operations(cluster.cluster_authorized_operations) if not cluster.error_code else (),
        {each.name or "": _operations(each.topic_authorized_operations) for each in topics if not each.error_code},
    )


def _operations(bits: int) -> tuple[str, ...]:
    """The names of the operations in a bit field of Kafka; a negative one means that none were asked for."""
    return tuple(each.name for each in Operation if each > Operation.ALL and bits > 0 and bits >> each & 1)
