"""Reads the facts of security: settings, rules, users and quotas over the wire, and what probes have shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.acls.requests import VERSION, describe_request, described_bindings
from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.doctor.reading import all_at_once
from odradek.admin.doctor.security.broker_listeners import listeners_of
from odradek.admin.doctor.security.consoles import open_consoles
from odradek.admin.doctor.security.facts import SecurityFacts
from odradek.admin.doctor.security.files import read_files
from odradek.admin.doctor.security.probes import anonymous_rights, tls_facts
from odradek.admin.errors import check
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_acls import DescribeAclsResponse
from odradek.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from odradek.security.acls.bindings import AclFilter

if TYPE_CHECKING:
    from odradek.admin.broker_requests import DescribedCluster, KnownBroker
    from odradek.admin.cluster import Cluster
    from odradek.admin.doctor.reading import Reader
    from odradek.admin.doctor.security.facts import AnonymousRights, Settings, TlsFacts
    from odradek.security.acls.bindings import AclBinding

BROKER_RESOURCE = 4
BROKER_TIMEOUT_S = 8.0
NO_FILE = "give --config server.properties on the machine of a broker"


def read_security(cluster: Cluster, reader: Reader, config_file: str | None) -> SecurityFacts:
    requests = BrokerRequests(cluster, BROKER_TIMEOUT_S)
    facts = SecurityFacts(reasons=reader.reasons)
    facts.files = None if config_file is None else reader.read("files", "", lambda: read_files(config_file))
    if config_file is None:
        reader.reasons["files"] = NO_FILE
        facts.not_requested = ("files",)
    described = reader.read("brokers", "reading the brokers …", requests.describe)
    if described is None:
        for name in ("listeners", "tls", "anonymous", "acls", "iterations", "quota_count", "consoles"):
            reader.reasons[name] = reader.reasons["brokers"]
        return facts
    facts.cluster_id = described.cluster_id
    facts.acls = reader.read("acls", "reading access control lists …", lambda: _read_acls(requests))
    facts.iterations = reader.read("iterations", "reading users …", lambda: _read_iterations(requests))
    facts.quota_count = reader.read("quota_count", "reading quotas …", lambda: _count_quotas(requests))
    facts.brokers = reader.read("brokers", "reading settings …", lambda: _read_settings(requests, described))
    facts.consoles = reader.read("consoles", "looking for consoles …", lambda: _find_consoles(described))
    if facts.brokers is None:
        for name in ("listeners", "tls", "anonymous"):
            reader.reasons[name] = reader.reasons["brokers"]
        return facts
    _probe(cluster, reader, facts, described)
    return facts


def _probe(cluster: Cluster, reader: Reader, facts: SecurityFacts, described: DescribedCluster) -> None:
    """Connect to each listener of clients, as everybody could."""
    assert facts.brokers is not None
    facts.listeners = listeners = [
        listener
        for broker_id, settings in facts.brokers.items()
        for listener in listeners_of(described.brokers[broker_id], settings)
    ]
    reached = [each for each in listeners if each.port > 0 and not each.is_of_controllers]

    def read_certificates() -> list[TlsFacts]:
        return all_at_once(lambda each: tls_facts(cluster, each), [each for each in reached if each.is_encrypted])

    def connect_without_credentials() -> list[AnonymousRights]:
        without_sasl = [each for each in reached if not each.has_sasl]
        answers = all_at_once(anonymous_rights, without_sasl)
        return [each for each in answers if each is not None]

    facts.tls = reader.read("tls", "reading certificates …", read_certificates)
    facts.anonymous = reader.read("anonymous", "connecting without credentials …", connect_without_credentials)


def _read_settings(requests: BrokerRequests, described: DescribedCluster) -> dict[int, Settings]:
    running = [each for each in described.brokers.values() if not each.is_fenced]
    return {broker.broker_id: _settings(requests, broker) for broker in running}


def _settings(requests: BrokerRequests, broker: KnownBroker) -> Settings:
    name = str(broker.broker_id)
    resource = DescribeConfigsResource(resource_type=BROKER_RESOURCE, resource_name=name, configuration_keys=None)
    answer = requests.ask(broker, DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse, 4)
    (result,) = answer.results
    check(result.error_code, result.error_message, f"settings of broker {name}")
    return {each.name: each.value for each in result.configs if each.value is not None}


def _read_acls(requests: BrokerRequests) -> list[AclBinding]:
    """No rules if the brokers have no authorizer, which is a finding of its own."""
    answer = requests.ask_any(describe_request(AclFilter()), DescribeAclsResponse, VERSION)
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        return []
    check(answer.error_code, answer.error_message, "access control lists")
    return described_bindings(answer)


def _read_iterations(requests: BrokerRequests) -> dict[str, int]:
    request = DescribeUserScramCredentialsRequest(users=None)
    answer = requests.ask_controller(request, DescribeUserScramCredentialsResponse, 0)
    check(answer.error_code, answer.error_message, "users")
    return {
        each.user: min(info.iterations for info in each.credential_infos)
        for each in answer.results
        if each.credential_infos
    }


def _count_quotas(requests: BrokerRequests) -> int:
    request = DescribeClientQuotasRequest(components=[], strict=False)
    answer = requests.ask_any(request, DescribeClientQuotasResponse, 1)
    check(answer.error_code, answer.error_message, "quotas")
    return len(answer.entries or [])


def _find_consoles(described: DescribedCluster) -> list[str]:
    hosts = sorted({each.host for each in described.brokers.values()})
    return [address for found in all_at_once(open_consoles, hosts) for address in found]
