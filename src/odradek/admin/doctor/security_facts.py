"""Reads the facts of security: settings, rules, users and quotas over the wire, consoles, and the files of a broker."""

from __future__ import annotations

import http.client
import re
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.admin.acls.requests import NoAuthorizer, find
from odradek.admin.broker_requests import BrokerRequests, DescribedCluster, live
from odradek.admin.doctor.cluster_facts import NO_BROKER, resolve, why_unreachable
from odradek.admin.doctor.findings import Facts
from odradek.admin.doctor.reader import Reader, all_at_once
from odradek.admin.doctor.security_listeners import anonymous_rights, listeners_of, tls_facts
from odradek.admin.quotas import read_quotas
from odradek.admin.settings import Kind, read_settings
from odradek.admin.users import read_users
from odradek.conventions.addresses import is_loopback
from odradek.conventions.properties_file import read_properties_file
from odradek.security.acls.bindings import AclBinding, AclFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.admin.cluster import Cluster
    from odradek.admin.doctor.security_listeners import AnonymousRights, ListenerFacts, TlsFacts
    from odradek.conventions.failures import Failure

    Settings = dict[str, str]

BROKER_TIMEOUT_S = 8.0
NO_FILE = "give --config server.properties on the machine of a broker"
SECRETS = re.compile(r"password|jaas\.config|secret|ssl\.keystore\.key|zookeeper\.auth")
METADATA_FILE = "odradek-metadata.sqlite"
CONSOLE_TIMEOUT_S = 5.0
CONSOLE_PORT = 8484
MOST_BYTES = 8192
TITLE = b" \xc2\xb7 Odradek</title>"  # of every page of the console
SERVED_HOST = "localhost"  # a console without a login refuses the names of other hosts; a client chooses what it sends


@dataclass(frozen=True, slots=True)
class FileFacts:
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
        reader.reasons["files"] = NO_FILE
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
        facts.consoles = reader.read("consoles", "looking for consoles …", lambda: _find_consoles(described))
    if described is None or facts.brokers is None:
        facts.unread_reason = reader.reasons["brokers"]
        return facts
    facts.listeners = [
        listener
        for broker_id, settings in facts.brokers.items()
        for listener in listeners_of(described.brokers[broker_id], settings)
    ]
    reached = [each for each in facts.listeners if each.port > 0 and not each.is_of_controllers]
    facts.tls = reader.read(
        "tls",
        "reading certificates …",
        lambda: all_at_once(lambda each: tls_facts(cluster, each), [each for each in reached if each.is_encrypted]),
    )
    rights = reader.read(
        "anonymous",
        "connecting without credentials …",
        lambda: all_at_once(anonymous_rights, [each for each in reached if not each.has_sasl]),
    )
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


def _find_consoles(described: DescribedCluster) -> list[str]:
    hosts = sorted({each.host for each in described.brokers.values()})
    return [address for found in all_at_once(open_consoles, hosts) for address in found]


def open_consoles(host: str) -> list[str]:
    """Addresses of consoles without a login, on the addresses of a host that other machines can reach."""
    try:
        addresses = [each for each in resolve(host, CONSOLE_PORT) if not is_loopback(each)]
    except OSError:
        return []
    found = (open_console(address, CONSOLE_PORT) for address in addresses)
    return [each for each in found if each is not None]


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
