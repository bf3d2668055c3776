"""Reads the facts of security: settings, rules, users and quotas over the wire, listeners, consoles, and the files of a
broker. Listeners are connected to as everybody could: for the certificate, the versions of TLS, and rights without
credentials. A probe asks and changes nothing."""

from __future__ import annotations

import datetime
import http.client
import re
import socket
import ssl
import stat
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.acls import NoAuthorizer, find
from odradek.admin.broker_requests import BrokerRequests, DescribedCluster, KnownBroker, live
from odradek.admin.cluster import Cluster, operations_of
from odradek.admin.doctor.cluster_facts import NO_BROKER, resolve, why_unreachable
from odradek.admin.doctor.findings import Facts
from odradek.admin.doctor.reader import Reader, all_at_once
from odradek.admin.quotas import read_quotas
from odradek.admin.security import wire_security
from odradek.admin.settings import Kind, read_settings
from odradek.admin.users import read_users
from odradek.admin.wire import KeptConnections, SecuredAddress
from odradek.conventions.addresses import is_loopback
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.conventions.properties_file import read_properties_file
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.security.acls.bindings import AclBinding, AclFilter
from odradek.security.tls.distinguished_names import MalformedCertificate
from odradek.security.tls.validity import validity

if TYPE_CHECKING:
    Settings = dict[str, str]

TIMEOUT_S = 5.0
VERSIONS = {each.name.replace("_", "."): each for each in ssl.TLSVersion if each.name.startswith("TLS")}
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


class TlsFacts(NamedTuple):
    """What a connection to a TLS listener has shown."""

    listener: ListenerFacts
    days_left: float | None  # of the certificate; None if it could not be read
    versions: tuple[str, ...]  # that the listener accepts
    error: str | None = None


class AnonymousRights(NamedTuple):
    """What a client without credentials may do on a listener."""

    listener: ListenerFacts
    cluster_operations: tuple[str, ...]
    topics: Mapping[str, tuple[str, ...]]  # operations of each topic that it sees


def listeners_of(broker: KnownBroker, settings: Mapping[str, str]) -> list[ListenerFacts]:
    """From the settings, with the address of clients. A port of the kernel's choice is known for an only listener."""
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
        addresses = bound_host, host, port
        protocol = protocols.get(name, name)
        found.append(ListenerFacts(broker.broker_id, name, protocol, *addresses, settings, name in controllers))
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
    of_cluster = _names(cluster.cluster_authorized_operations) if not cluster.error_code else ()
    of_topics = {each.name or "": _names(each.topic_authorized_operations) for each in topics if not each.error_code}
    return AnonymousRights(listener, of_cluster, of_topics)


def _names(bits: int) -> tuple[str, ...]:
    return tuple(each.name for each in sorted(operations_of(bits) or ()))


BROKER_TIMEOUT_S = 8.0
SECRETS = re.compile(r"password|jaas\.config|secret|ssl\.keystore\.key|zookeeper\.auth")
METADATA_FILE = "odradek-metadata.sqlite"
CONSOLE_TIMEOUT_S = 5.0
CONSOLE_PORT = 8484
MOST_BYTES = 8192
TITLE = b" \xc2\xb7 Odradek</title>"  # of every page of the console
SERVED_HOST = "localhost"  # a console without a login refuses the names of other hosts; a client chooses what it sends


class FileFacts(NamedTuple):
    path: str
    mode: int
    content: str  # what it has, in words


@dataclass(slots=True, kw_only=True)
class SecurityFacts(Facts):
    cluster_id: str | None = None
    unreachable: Failure | None = None  # why no broker has answered
    brokers: Mapping[int, Settings] | None = None
    listeners: Sequence[ListenerFacts] | None = None
    tls: Sequence[TlsFacts] | None = None
    anonymous: Sequence[AnonymousRights] | None = None
    acls: Sequence[AclBinding] | None = None
    iterations: Mapping[str, int] | None = None  # the fewest of a SCRAM user's credentials
    quota_count: int | None = None
    files: Sequence[FileFacts] | None = None
    consoles: Sequence[str] | None = None  # addresses of consoles without a login that other machines reach


def read_security(cluster: Cluster, reader: Reader, config_file: str | None) -> SecurityFacts:
    facts = SecurityFacts(reasons=reader.reasons)
    if config_file is not None:
        facts.files = reader.read("files", "", lambda: read_files(config_file))
    else:
        reader.reasons["files"] = "give --config server.properties on the machine of a broker"
        facts.not_requested = ("files",)
    requests = BrokerRequests(cluster, BROKER_TIMEOUT_S)
    described = reader.read("brokers", "reading the brokers …", requests.describe)
    if described is None:
        facts.unreachable = why_unreachable(requests)
        reader.reasons["brokers"] = reader.reasons["brokers"] if facts.unreachable is None else NO_BROKER
    else:
        facts.cluster_id = described.cluster_id
        facts.acls = reader.read("acls", "reading access control lists …", lambda: _read_acls(cluster))
        facts.iterations = reader.read("iterations", "reading users …", lambda: _read_iterations(cluster))
        facts.quota_count = reader.read("quota_count", "reading quotas …", lambda: len(read_quotas(cluster)))
        facts.brokers = reader.read("brokers", "reading settings …", lambda: _read_settings(cluster, described))
        hosts = sorted({each.host for each in described.brokers.values()})
        consoles = reader.read("consoles", "looking for consoles …", lambda: all_at_once(open_consoles, hosts))
        facts.consoles = None if consoles is None else [address for found in consoles for address in found]
    if described is None or facts.brokers is None:
        facts.unread_reason = reader.reasons["brokers"]
        return facts
    facts.listeners = [
        listener
        for broker_id, settings in facts.brokers.items()
        for listener in listeners_of(described.brokers[broker_id], settings)
    ]
    reached = [each for each in facts.listeners if each.port > 0 and not each.is_of_controllers]
    encrypted = [each for each in reached if each.is_encrypted]
    examine = partial(tls_facts, cluster)
    facts.tls = reader.read("tls", "reading certificates …", lambda: all_at_once(examine, encrypted))
    open_to_all = [each for each in reached if not each.has_sasl]
    step = "connecting without credentials …"
    rights = reader.read("anonymous", step, lambda: all_at_once(anonymous_rights, open_to_all))
    facts.anonymous = None if rights is None else [each for each in rights if each is not None]
    return facts


def _read_settings(cluster: Cluster, described: DescribedCluster) -> dict[int, Settings]:
    return {
        broker.broker_id: {
            each.name: each.value
            for each in read_settings(cluster, Kind.BROKER, str(broker.broker_id), BROKER_TIMEOUT_S)
            if each.value is not None
        }
        for broker in live(described.brokers)
    }


def _read_acls(cluster: Cluster) -> list[AclBinding]:
    """No rules if the brokers have no authorizer, which is a finding of its own."""
    try:
        return find(cluster, [AclFilter()])
    except NoAuthorizer:
        return []


def _read_iterations(cluster: Cluster) -> dict[str, int]:
    fewest: dict[str, int] = {}
    for user, _mechanism, iterations in read_users(cluster):
        fewest[user] = min(iterations, fewest.get(user, iterations))
    return fewest


def read_files(config_file: str) -> list[FileFacts]:
    """The files with credentials that the properties of a broker name, and their modes. Failure if the properties
    cannot be read. Files that do not exist are left out."""
    properties = read_properties_file(config_file)
    candidates: dict[Path, str] = {}
    if any(SECRETS.search(name) for name in properties):
        candidates[Path(config_file)] = "passwords in properties"
    for name, value in properties.items():
        if name.endswith("ssl.keystore.location"):
            candidates[Path(value)] = "private key"
    for directory in (properties.get("log.dirs") or properties.get("log.dir") or "").split(","):
        if directory.strip():
            candidates[Path(directory.strip()) / METADATA_FILE] = "users of the broker"
    return [
        FileFacts(str(path), stat.S_IMODE(path.stat().st_mode), content)
        for path, content in candidates.items()
        if path.is_file()
    ]


def open_consoles(host: str) -> list[str]:
    """Addresses of consoles without a login, on the addresses of a host that other machines can reach."""
    try:
        addresses = [each for each in resolve(host, CONSOLE_PORT) if not is_loopback(each)]
    except OSError:
        return []
    return [found for address in addresses if (found := open_console(address, CONSOLE_PORT)) is not None]


def open_console(address: str, port: int) -> str | None:
    """The address of a console that serves its first page without a login; None for anything else."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for scheme, connection in (
        ("http", http.client.HTTPConnection(address, port, timeout=CONSOLE_TIMEOUT_S)),
        ("https", http.client.HTTPSConnection(address, port, timeout=CONSOLE_TIMEOUT_S, context=context)),
    ):
        try:
            connection.request("GET", "/", headers={"Host": SERVED_HOST, "Connection": "close"})
            answer = connection.getresponse()
            is_open = answer.status == http.client.OK and TITLE in answer.read(MOST_BYTES)
            return f"{scheme}://{f'[{address}]' if ':' in address else address}:{port}/" if is_open else None
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()
    return None
