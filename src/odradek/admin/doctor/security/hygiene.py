"""Rules on users, files, ZooKeeper, limits and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import problem, warning
from odradek.conventions.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.doctor.finding import Finding
    from odradek.admin.doctor.security.facts import SecurityFacts

FEWEST_ITERATIONS = 4096
OTHERS = 0o077


def scram_iterations(facts: SecurityFacts) -> Iterator[Finding]:
    """Kafka's smallest number; users of older clusters may have fewer."""
    assert facts.iterations is not None
    found = {user: count for user, count in facts.iterations.items() if count < FEWEST_ITERATIONS}
    if found:
        yield warning(
            f"users have SCRAM credentials with fewer than {FEWEST_ITERATIONS} iterations",
            [f"{user}: {count} iterations" for user, count in found.items()],
            f"Set the password again: odradek user password {next(iter(found))}",
        )


def credential_files(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.files is not None
    found = [each for each in facts.files if each.mode & OTHERS]
    if found:
        yield problem(
            "other users of this machine can read or change files with credentials",
            [f"{each.path}: mode {each.mode:04o}, {each.content}" for each in found],
            f"chmod 600 {' '.join(each.path for each in found[:5])}",
        )


def zookeeper(facts: SecurityFacts) -> Iterator[Finding]:
    """The cluster's metadata in ZooKeeper, SCRAM credentials included."""
    assert facts.brokers is not None
    used = {each: settings for each, settings in facts.brokers.items() if settings.get("zookeeper.connect")}
    is_open = [broker_id for broker_id, settings in used.items() if settings.get("zookeeper.set.acl") != "true"]
    if is_open:
        yield problem(
            "everybody who reaches ZooKeeper can read and change the cluster's metadata",
            [f"broker {broker_id}: zookeeper.set.acl is not true" for broker_id in is_open],
            "Set zookeeper.auth and zookeeper.set.acl=true, and close ZooKeeper's ports to other machines",
        )


def auto_created_topics(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.brokers is not None
    found = [
        broker_id
        for broker_id, settings in facts.brokers.items()
        if settings.get("auto.create.topics.enable", "true") == "true"
    ]
    if found:
        yield warning(
            "a client that asks for a topic creates it (auto.create.topics.enable)",
            [f"broker {broker_id}" for broker_id in found],
            "Set auto.create.topics.enable=false in the properties of the brokers",
        )


def exposed_metrics(facts: SecurityFacts) -> Iterator[Finding]:
    """Brokers of Odradek only: Apache Kafka has no such setting."""
    assert facts.brokers is not None
    addresses = {broker_id: settings.get("metrics.listener", "") for broker_id, settings in facts.brokers.items()}
    found = {broker_id: address for broker_id, address in addresses.items() if _is_exposed(address)}
    if found:
        yield warning(
            "other machines can read metrics without authentication: names of topics, traffic, versions",
            [f"broker {broker_id}: metrics.listener={address}" for broker_id, address in found.items()],
            "Set metrics.listener=127.0.0.1:9644, or let a firewall admit the machine of Prometheus only",
        )


def exposed_console(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.consoles is not None
    if facts.consoles:
        yield problem(
            "consoles without a login can be reached from other machines",
            facts.consoles,
            "Start the console with a login and HTTPS: odradek console --login sasl --tls-cert FILE --tls-key FILE; or "
            "let it listen on 127.0.0.1 only, and reach it through ssh -L 8484:127.0.0.1:8484 HOST",
        )


def no_quotas(facts: SecurityFacts) -> Iterator[Finding]:
    if facts.quota_count == 0:
        yield warning(
            "there are no quotas: one client can take all of a broker",
            [],
            "odradek quota set --user-default producer_byte_rate=10485760 consumer_byte_rate=10485760",
        )


def no_audit_log(facts: SecurityFacts) -> Iterator[Finding]:
    """Only brokers that have the setting: Apache Kafka logs denials with its authorizer's logger."""
    assert facts.brokers is not None
    found = [
        broker_id
        for broker_id, settings in facts.brokers.items()
        if "audit.log.max.bytes" in settings and not settings.get("audit.log.path")
    ]
    if found:
        yield warning(
            "denied requests and changes are not logged",
            [f"broker {broker_id}" for broker_id in found],
            "Set audit.log.path=/var/log/odradek/audit.log in the properties of the brokers",
        )


def _is_exposed(address: str) -> bool:
    """Of host:port; an empty address is none."""
    host = address.strip().rpartition(":")[0]
    return bool(address.strip()) and not is_loopback(host.removeprefix("[").removesuffix("]"))
