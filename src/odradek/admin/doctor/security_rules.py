"""Rules on security: the checklist of docs/security.md, in the same order. Listeners, TLS, access, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.admin.doctor.findings import Checks, Finding, problem, problem_if, warning
from odradek.conventions.addresses import is_loopback
from odradek.conventions.figures import count_text
from odradek.security.acls.bindings import AclBinding, Permission
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.admin.doctor.security_facts import AnonymousRights, FileFacts, ListenerFacts, Settings, TlsFacts

CLEAR_TEXT = frozenset({"PLAIN", "OAUTHBEARER"})
FEW_DAYS = 30
VERY_FEW_DAYS = 7
OLD_VERSIONS = frozenset({"TLSv1", "TLSv1.1"})
AUTHORIZER = "authorizer.class.name"
EVERYBODY = frozenset({"User:*", "User:ANONYMOUS"})
MOST_SUPER_USERS = 5
READS = frozenset({Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS})
HARMLESS = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"})
FEWEST_ITERATIONS = 4096
OTHERS = 0o077

CHECKS = Checks()


@CHECKS.rule("encryption")
def not_encrypted(listeners: Sequence[ListenerFacts]) -> Iterator[Finding]:
    if found := [each.place for each in listeners if each.is_exposed and not each.is_encrypted]:
        yield problem(
            "listeners that other machines reach do not encrypt",
            found,
            "Use SSL:// or SASL_SSL:// in listeners, with ssl.keystore.location; to try: odradek secure init DIR",
        )


@CHECKS.rule("authentication")
def not_authenticated(listeners: Sequence[ListenerFacts]) -> Iterator[Finding]:
    if found := [each.place for each in listeners if each.is_exposed and not each.is_authenticating]:
        yield problem(
            "listeners that other machines reach do not authenticate: every client is User:ANONYMOUS",
            found,
            "Use SASL_SSL:// with sasl.enabled.mechanisms, or SSL:// with ssl.client.auth=required",
        )


@CHECKS.rule("clear-text-passwords")
def passwords_in_clear_text(listeners: Sequence[ListenerFacts]) -> Iterator[Finding]:
    plain = [each for each in listeners if each.protocol == "SASL_PLAINTEXT"]
    if found := [(each, mechanisms) for each in plain if (mechanisms := sorted(CLEAR_TEXT & set(each.mechanisms)))]:
        yield problem_if(
            any(each.is_exposed for each, _mechanisms in found),
            "listeners without TLS accept mechanisms that send passwords or tokens as they are",
            [f"{each.place}: {', '.join(mechanisms)}" for each, mechanisms in found],
            "Use SASL_SSL:// for them, or only SCRAM-SHA-512 in sasl.enabled.mechanisms",
        )


@CHECKS.rule("between-brokers")
def between_brokers(listeners: Sequence[ListenerFacts], brokers: Mapping[int, Settings]) -> Iterator[Finding]:
    exposed = [each for each in listeners if each.is_exposed and not each.is_encrypted]
    found = [each.place for each in exposed if each.is_between_brokers]
    if found and len(brokers) > 1:
        yield problem(
            "brokers talk to each other without encryption, on a listener that other machines reach",
            found,
            "Set inter.broker.listener.name to a listener with SSL or SASL_SSL, and restart the brokers one by one",
        )


@CHECKS.rule("certificate-expiry")
def certificate_expiry(tls: Sequence[TlsFacts]) -> Iterator[Finding]:
    if unread := [each for each in tls if each.error is not None]:
        yield warning(
            "certificates could not be read: the TLS handshake failed",
            [f"{each.listener.place}: {each.error}" for each in unread],
            "Check the keystore of the listener, and that this machine reaches it",
        )
    for first, last in ((float("-inf"), VERY_FEW_DAYS), (VERY_FEW_DAYS, FEW_DAYS)):
        read = [(each.listener, each.days_left) for each in tls if each.days_left is not None]
        if found := [(listener, days) for listener, days in read if first < days <= last]:
            yield problem_if(
                last == VERY_FEW_DAYS,
                "certificates expire soon, or have expired",
                [
                    f"{listener.place}: {f'expired {-days:.0f} days ago' if days < 0 else f'{days:.0f} days left'}"
                    for listener, days in found
                ],
                "Replace the file that ssl.keystore.location names: the broker reads it again without a restart",
            )


@CHECKS.rule("tls-versions")
def tls_versions(tls: Sequence[TlsFacts]) -> Iterator[Finding]:
    if old := [(each.listener, found) for each in tls if (found := sorted(OLD_VERSIONS & set(each.versions)))]:
        yield problem(
            "listeners accept versions of TLS that are broken",
            [f"{listener.place}: {', '.join(versions)}" for listener, versions in old],
            "Set ssl.enabled.protocols=TLSv1.2,TLSv1.3",
        )
    if without := [each.listener.place for each in tls if each.versions and "TLSv1.3" not in each.versions]:
        advice = "Set ssl.enabled.protocols=TLSv1.2,TLSv1.3, and leave ssl.cipher.suites unset"
        yield warning("listeners do not offer TLS 1.3", without, advice)


@CHECKS.rule("authorizer")
def no_authorizer(brokers: Mapping[int, Settings], listeners: Sequence[ListenerFacts] = ()) -> Iterator[Finding]:
    if found := [broker_id for broker_id, settings in brokers.items() if not settings.get(AUTHORIZER)]:
        yield problem_if(
            any(each.is_exposed for each in listeners),
            "brokers have no authorizer: every client may do everything",
            _places(found),
            f"Set {AUTHORIZER}=org.apache.kafka.metadata.authorizer.StandardAuthorizer and super.users, then: "
            "odradek acl add --allow-principal User:NAME --producer --topic TOPIC",
        )


@CHECKS.rule("allow-everyone")
def allow_everyone(brokers: Mapping[int, Settings]) -> Iterator[Finding]:
    name = "allow.everyone.if.no.acl.found"
    restricted = {broker_id: settings for broker_id, settings in brokers.items() if settings.get(AUTHORIZER)}
    if found := [broker_id for broker_id, settings in restricted.items() if settings.get(name) == "true"]:
        yield problem(
            f"everyone may access whatever no rule names ({name})",
            _places(found),
            f"Add rules for those who need them, then set {name}=false",
        )


@CHECKS.rule("super-users")
def super_users(brokers: Mapping[int, Settings]) -> Iterator[Finding]:
    named = {
        broker_id: [each.strip() for each in settings.get("super.users", "").split(";") if each.strip()]
        for broker_id, settings in brokers.items()
    }
    if broad := {each: found for each, names in named.items() if (found := sorted(EVERYBODY & set(names)))}:
        yield problem(
            "super.users has principals that anybody can be",
            [f"broker {broker_id}: {', '.join(names)}" for broker_id, names in broad.items()],
            "Name the principals of brokers and administrators only in super.users",
        )
    if many := {broker_id: names for broker_id, names in named.items() if len(names) > MOST_SUPER_USERS}:
        yield warning(
            f"there are more than {MOST_SUPER_USERS} super users, which no rule restricts",
            [f"broker {broker_id}: {len(names)} super users" for broker_id, names in many.items()],
            "Give rights by rules instead: odradek acl add --allow-principal User:NAME --operation … --topic …",
        )


@CHECKS.rule("wildcard-rules")
def wildcard_rules(acls: Sequence[AclBinding]) -> Iterator[Finding]:
    allowed = [each for each in acls if each.permission == Permission.ALLOW]
    of_everybody = [each for each in allowed if each.principal in EVERYBODY]
    if changing := [each for each in of_everybody if each.operation not in READS]:
        yield problem(
            "rules allow everybody to change something",
            map(_rule_text, changing),
            "Name principals instead: odradek acl list --principal 'User:*', then odradek acl remove …",
        )
    of_some = [each for each in allowed if each.principal not in EVERYBODY]
    if everything := [each for each in of_some if each.operation == Operation.ALL and each.resource_name == "*"]:
        yield warning(
            "rules allow all operations on all resources of a type",
            map(_rule_text, everything),
            "Allow the operations and names that are needed: odradek acl add --producer or --consumer",
        )


def _rule_text(rule: AclBinding) -> str:
    operation = f"{Operation(rule.operation).name} on {rule.resource_type.name} {rule.resource_name}"
    return f"{rule.principal} from {rule.host}: {operation}"


@CHECKS.rule("anonymous")
def anonymous_clients(anonymous: Sequence[AnonymousRights]) -> Iterator[Finding]:
    """What a client without credentials was answered, not what settings promise."""
    if found := [(each.listener, changes) for each in anonymous if (changes := _changes_text(each))]:
        yield problem_if(
            any(listener.is_exposed for listener, _changes in found),
            "clients without credentials may change or read things",
            [f"{listener.place}: {changes}" for listener, changes in found],
            "Turn on authentication and access control lists (docs/security.md), and see what is left: "
            "odradek acl check User:ANONYMOUS Write topic:NAME",
        )


def _changes_text(rights: AnonymousRights) -> str:
    cluster = [each for each in rights.cluster_operations if each not in HARMLESS]
    topics = [topic for topic, operations in rights.topics.items() if set(operations) - HARMLESS]
    words = [f"{', '.join(cluster)} on the cluster"] if cluster else []
    words += [f"{count_text(len(topics), 'topic')}, such as {topics[0]}"] if topics else []
    return "; ".join(words)


@CHECKS.rule("scram-iterations")
def scram_iterations(iterations: Mapping[str, int]) -> Iterator[Finding]:
    """Kafka's smallest number; users of older clusters may have fewer."""
    if found := {user: count for user, count in iterations.items() if count < FEWEST_ITERATIONS}:
        yield warning(
            f"users have SCRAM credentials with fewer than {FEWEST_ITERATIONS} iterations",
            [f"{user}: {count} iterations" for user, count in found.items()],
            f"Set the password again: odradek user password {next(iter(found))}",
        )


@CHECKS.rule("credential-files")
def credential_files(files: Sequence[FileFacts]) -> Iterator[Finding]:
    if found := [each for each in files if each.mode & OTHERS]:
        yield problem(
            "other users of this machine can read or change files with credentials",
            [f"{each.path}: mode {each.mode:04o}, {each.content}" for each in found],
            f"chmod 600 {' '.join(each.path for each in found[:5])}",
        )


@CHECKS.rule("zookeeper")
def open_zookeeper(brokers: Mapping[int, Settings]) -> Iterator[Finding]:
    """The cluster's metadata in ZooKeeper, SCRAM credentials included."""
    used = {each: settings for each, settings in brokers.items() if settings.get("zookeeper.connect")}
    if is_open := [broker_id for broker_id, settings in used.items() if settings.get("zookeeper.set.acl") != "true"]:
        yield problem(
            "everybody who reaches ZooKeeper can read and change the cluster's metadata",
            [f"broker {broker_id}: zookeeper.set.acl is not true" for broker_id in is_open],
            "Set zookeeper.auth and zookeeper.set.acl=true, and close ZooKeeper's ports to other machines",
        )


@CHECKS.rule("auto-create-topics")
def auto_created_topics(brokers: Mapping[int, Settings]) -> Iterator[Finding]:
    name = "auto.create.topics.enable"
    if found := [broker_id for broker_id, settings in brokers.items() if settings.get(name, "true") == "true"]:
        yield warning(
            f"a client that asks for a topic creates it ({name})",
            _places(found),
            f"Set {name}=false in the properties of the brokers",
        )


@CHECKS.rule("quotas")
def no_quotas(quota_count: int) -> Iterator[Finding]:
    if quota_count == 0:
        advice = "odradek quota set --user-default producer_byte_rate=10485760 consumer_byte_rate=10485760"
        yield warning("there are no quotas: one client can take all of a broker", [], advice)


@CHECKS.rule("audit-log")
def no_audit_log(brokers: Mapping[int, Settings]) -> Iterator[Finding]:
    """Only brokers that have the setting: Apache Kafka logs denials with its authorizer's logger."""
    able = {broker_id: settings for broker_id, settings in brokers.items() if "audit.log.max.bytes" in settings}
    if found := [broker_id for broker_id, settings in able.items() if not settings.get("audit.log.path")]:
        advice = "Set audit.log.path=/var/log/odradek/audit.log in the properties of the brokers"
        yield warning("denied requests and changes are not logged", _places(found), advice)


@CHECKS.rule("metrics-listener")
def exposed_metrics(brokers: Mapping[int, Settings]) -> Iterator[Finding]:
    """Brokers of Odradek only: Apache Kafka has no such setting."""
    addresses = {broker_id: settings.get("metrics.listener", "") for broker_id, settings in brokers.items()}
    if found := {broker_id: address for broker_id, address in addresses.items() if _is_exposed(address.strip())}:
        yield warning(
            "other machines can read metrics without authentication: names of topics, traffic, versions",
            [f"broker {broker_id}: metrics.listener={address}" for broker_id, address in found.items()],
            "Set metrics.listener=127.0.0.1:9644, or let a firewall admit the machine of Prometheus only",
        )


def _is_exposed(address: str) -> bool:
    """Of host:port; an empty address is none."""
    host = address.rpartition(":")[0]
    return bool(address) and not is_loopback(host.removeprefix("[").removesuffix("]"))


@CHECKS.rule("console")
def exposed_console(consoles: Sequence[str]) -> Iterator[Finding]:
    if consoles:
        yield problem(
            "consoles without a login can be reached from other machines",
            consoles,
            "Start the console with a login and HTTPS: odradek console --login sasl --tls-cert FILE --tls-key FILE; or "
            "let it listen on 127.0.0.1 only, and reach it through ssh -L 8484:127.0.0.1:8484 HOST",
        )


def _places(broker_ids: Iterable[int]) -> list[str]:
    return [f"broker {broker_id}" for broker_id in broker_ids]
