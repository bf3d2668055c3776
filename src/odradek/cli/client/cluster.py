"""A cluster: its addresses, the Kafka clients for it, and the admin requests that several commands need.

Reachability and credentials are tested by a connection of our own first, because librdkafka retries without reporting.
"""

from __future__ import annotations

import logging
import socket
import time
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from confluent_kafka import Consumer, IsolationLevel, KafkaException, Producer, TopicCollection, TopicPartition

from odradek.cli.client.kafka_admin import AclOperation, AdminClient, NewTopic, OffsetSpec, TopicDescription
from odradek.cli.client.kafka_errors import (
    AnswerTimeout,
    NoSuchGroup,
    NoSuchTopic,
    NotAuthorized,
    RefusedConnection,
    explain,
    reason_of,
    unreachable,
)
from odradek.cli.client.request_parts import PARTITIONS_PER_REQUEST, TOPICS_PER_REQUEST, in_parts
from odradek.cli.client.wire_request import BrokerConnection
from odradek.cli.client.wire_security import SecuredAddress, UnsupportedLogin, wire_security
from odradek.cli.framework.failure import Failure
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka import KafkaError

    from odradek.cli.client.wire_security import BearerToken, WireSecurity

Key = tuple[str, int]  # topic, partition

CONNECT_TIMEOUT_S = 3.0
REQUEST_TIMEOUT_S = 15.0
LEADER_TIMEOUT_S = 5.0
DEFAULT_PORT = 9092
METADATA_VERSION = 4  # of Kafka 1.0
# librdkafka sends admin requests to the controller that it knows. When it has died, they time out until the metadata
# are read again; the default is 5 minutes.
ADMIN_SETTINGS = {"topic.metadata.refresh.interval.ms": 5_000}
LEADER_ERRORS = frozenset({"NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE"})
PYTHON_ONLY_PROPERTIES = frozenset(  # their values are Python functions and objects
    {"error_cb", "stats_cb", "throttle_cb", "oauth_cb", "logger", "on_delivery", "delivery.report.only.error"}
)
NO_SUCH_TOPIC_ERRORS = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"})
CONNECTION_ERRORS = frozenset({"_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_MSG_TIMED_OUT"})


def split_addresses(bootstrap_servers: str) -> list[tuple[str, int]]:
    """Split `host:port,[::1]:port` into pairs; Failure for an invalid address."""
    addresses = []
    for part in bootstrap_servers.split(","):
        text = part.strip()
        host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
        if not colon:
            host, port = text, str(DEFAULT_PORT)
        is_bare_ipv6 = ":" in host and not host.startswith("[")
        if not host or is_bare_ipv6 or not port.isdecimal() or not 0 < int(port) < 65536:
            raise Failure(f"{text!r} is not an address; --bootstrap-server takes HOST:PORT[,HOST:PORT…]")
        addresses.append((host.strip("[]"), int(port)))
    return addresses


class ListedOffsets(NamedTuple):
    """Offsets by partition; `failures` of the partitions that have none."""

    offsets: dict[Key, int]
    failures: dict[Key, Failure]


def chosen_partitions(topic: TopicDescription, wanted: Sequence[int]) -> list[int]:
    """The wanted partitions of a topic, or all; Failure for one that does not exist."""
    existing = sorted(partition.id for partition in topic.partitions)
    missing = sorted(set(wanted) - set(existing))
    if missing:
        has = f"partitions 0–{existing[-1]}" if len(existing) > 1 else "partition 0 only"
        raise Failure(f"topic {topic.name} has no partition {missing[0]}; it has {has}")
    return sorted(set(wanted)) or existing


def without_leader(topics: Iterable[TopicDescription]) -> set[Key]:
    """The partitions of which no replica can serve requests: one for their offsets would wait for its timeout."""
    return {(topic.name, each.id) for topic in topics for each in topic.partitions if each.leader is None}


class Cluster:
    """Addresses and client properties of a cluster. Clients are created on demand."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str], token: BearerToken | None = None) -> None:
        self.bootstrap_servers = properties.get("bootstrap.servers", bootstrap_servers)
        self.properties = dict(properties)
        self.last_error: KafkaError | None = None
        self.is_stopped: Callable[[], bool] = lambda: False  # ends readings of records, on other threads as well
        self._is_reachable = False
        self._admin: AdminClient | None = None
        self._admin_lock = Lock()
        self._wire_security: WireSecurity | None = None
        self._token = token

    def replace_token(self, token: BearerToken) -> None:
        """Connections that are opened later authenticate with this token."""
        self._token = token
        # Replaced, and not set to None: another thread, which then makes it, could do so with the old token.
        self._wire_security = wire_security(self.properties, token)

    def check_reachable(self, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        """Failure unless one of the brokers accepts a connection with the cluster's TLS and SASL."""
        if self._is_reachable:
            return
        reason = ""
        for host, port in split_addresses(self.bootstrap_servers):
            try:
                self._probe(host, port, timeout_s)
            except RefusedConnection:
                raise
            except AnswerTimeout:
                pass  # the client library waits for longer
            except Failure as failure:
                reason = reason_of(failure)
                continue
            self._is_reachable = True
            return
        raise unreachable(self.bootstrap_servers, reason)

    def _probe(self, host: str, port: int, timeout_s: float) -> None:
        """Opens a connection, and asks for something that every listener without SASL answers."""
        try:
            address = self.address(host, port)
        except UnsupportedLogin:
            socket.create_connection((host, port), timeout=timeout_s).close()
            return
        connection = BrokerConnection(address, timeout_s)
        try:
            if address.security is None or address.security.credentials is None:
                request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
                connection.ask(request, MetadataResponse, METADATA_VERSION)
        finally:
            connection.close()

    def address(self, host: str, port: int) -> SecuredAddress:
        """The address of a broker for requests that the client library cannot make, with the cluster's TLS and SASL."""
        if self._wire_security is None:
            self._wire_security = wire_security(self.properties, self._token)
        return SecuredAddress(host, port, self._wire_security)

    def bootstrap_addresses(self) -> list[SecuredAddress]:
        return [self.address(host, port) for host, port in split_addresses(self.bootstrap_servers)]

    def admin(self) -> AdminClient:
        """One for all threads: a client that is replaced is destroyed, and its requests are never answered."""
        with self._admin_lock:
            if self._admin is None:
                self._admin = _create(AdminClient, self._settings(ADMIN_SETTINGS))
            return self._admin

    def producer(self, defaults: Mapping[str, Any], **callbacks: Any) -> Producer:
        return cast("Producer", _create(Producer, {**self._settings(defaults), **callbacks}))

    def consumer(self, defaults: Mapping[str, Any], required: Mapping[str, Any] | None = None) -> Consumer:
        """A consumer for `assign`: without a `group.id` in `defaults`, no group is joined and nothing is committed.

        Properties of the user take precedence over `defaults`, and `required` over those of the user.
        """
        settings = {
            "group.id": "odradek-cli",  # librdkafka requires a name; with assign() no group is joined
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            **defaults,
        }
        if not self.properties.get("group.id", "-"):
            raise Failure("-X group.id= is empty; leave it out")  # librdkafka would abort the process
        return cast("Consumer", _create(Consumer, {**self._settings(settings), **(required or {})}))

    def _settings(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Properties of every client. Those of the user take precedence."""
        self.check_reachable()
        for name in self.properties:
            if name in PYTHON_ONLY_PROPERTIES:
                raise Failure(f"-X {name} is not a property that can be set on a command line")
        silent = logging.getLogger("odradek.cli.librdkafka")
        silent.propagate = False
        silent.addHandler(logging.NullHandler())
        return {
            **({} if self._token is None else {"oauth_cb": self._give_token}),
            "client.id": "odradek-cli",
            "socket.connection.setup.timeout.ms": 5000,
            **defaults,
            "bootstrap.servers": self.bootstrap_servers,
            "error_cb": self._remember,
            "logger": silent,
            **self.properties,
        }

    def _give_token(self, _config: str) -> tuple[str, float]:
        assert self._token is not None
        return self._token.value, self._token.expires_s

    def _remember(self, error: KafkaError) -> None:
        """The reason of a failure, such as a wrong password, is not replaced by its consequence."""
        if self.last_error is None or error.name() not in CONNECTION_ERRORS:
            self.last_error = error

    def topic_names(self, timeout_s: float = REQUEST_TIMEOUT_S) -> list[str]:
        self.check_reachable(min(timeout_s, CONNECT_TIMEOUT_S))
        return sorted(self.admin().list_topics(timeout=timeout_s).topics)

    def group_names(self, timeout_s: float = REQUEST_TIMEOUT_S) -> list[str]:
        self.check_reachable(min(timeout_s, CONNECT_TIMEOUT_S))
        found = self.finish(self.admin().list_consumer_groups(request_timeout=timeout_s), "groups")
        return sorted(each.group_id for each in found.valid)

    def create_topic(
        self, name: str, partitions: int = -1, replication_factor: int = -1, configs: Mapping[str, str] | None = None
    ) -> bool:
        """False if the topic already exists. The broker chooses numbers that are −1."""
        wanted = NewTopic(
            name, num_partitions=partitions, replication_factor=replication_factor, config=dict(configs or {})
        )
        try:
            self.admin().create_topics([wanted])[name].result()
        except KafkaException as error:
            if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
                return False
            raise self.failure(error.args[0], f"topic {name}", "Create") from None
        return True

    def may(self, operation: AclOperation) -> bool:
        """Whether the user has this right to the cluster. Lists leave out what the user may not describe."""
        described = self.admin().describe_cluster(include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S)
        return operation in (self.finish(described, "cluster").authorized_operations or ())

    def describe_topic(self, name: str) -> TopicDescription:
        """The topic's partitions; Failure if it does not exist. A metadata request could create it."""
        return self.describe_topics([name])[0]

    def has_topic(self, name: str) -> bool:
        """Whether the topic exists; True if the broker does not say."""
        try:
            self.describe_topic(name)
        except NoSuchTopic:
            return False
        except Failure:
            return True
        return True

    def find_topics(self, names: Iterable[str]) -> list[TopicDescription]:
        """Those of the topics that exist and that the user may see."""
        found = []
        for some in in_parts(names, TOPICS_PER_REQUEST):
            futures = self.admin().describe_topics(TopicCollection(some), request_timeout=REQUEST_TIMEOUT_S)
            for name, future in futures.items():
                try:
                    found.append(self.finish(future, f"topic {name}", "Describe"))
                except (NoSuchTopic, NotAuthorized):
                    continue
        return found

    def describe_topics(self, names: Iterable[str]) -> list[TopicDescription]:
        found: list[TopicDescription] = []
        for some in in_parts(names, TOPICS_PER_REQUEST):
            futures = self.admin().describe_topics(TopicCollection(some), request_timeout=REQUEST_TIMEOUT_S)
            found += [self.finish(future, f"topic {name}", "Describe") for name, future in futures.items()]
        return found

    def choose_partitions(self, topic: str, wanted: Sequence[int]) -> list[int]:
        """The wanted partitions of a topic, or all; Failure for one that does not exist."""
        return chosen_partitions(self.describe_topic(topic), wanted)

    def finish(self, future: Future[Any], subject: str, operation: str = "") -> Any:
        """The result of an admin request; Failure that names the subject if the broker refuses, and the operation that
        the user lacks."""
        try:
            return future.result()
        except KafkaException as error:
            raise self.failure(error.args[0], subject, operation) from None

    def earliest_offsets(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return self._offsets(topic, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # confluent_kafka has no types here

    def latest_offsets(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return self._offsets(topic, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def last_stable_offsets(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset of an open transaction; the high watermark if no transaction is open."""
        return self._offsets(topic, partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)  # type: ignore[no-untyped-call]

    def offsets_at(self, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
        """Offset of the first record at or after a time; −1 if there is none."""
        return self._offsets(topic, partitions, OffsetSpec.for_timestamp(time_ms))

    def _offsets(
        self, topic: str, partitions: Iterable[int], spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[int, int]:  # fmt: skip
        listed = self.list_offsets([(topic, partition) for partition in partitions], spec, isolation)
        for failure in listed.failures.values():
            raise failure
        return {partition: offset for (_topic, partition), offset in listed.offsets.items()}

    def list_offsets(
        self, keys: Iterable[Key], spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> ListedOffsets:
        """Offsets of partitions of any topics. Retries for some seconds while a partition has no leader, as after the
        creation of a topic."""
        listed = ListedOffsets({}, {})
        asked: Iterable[Key] = keys
        deadline = time.monotonic() + LEADER_TIMEOUT_S
        while True:
            without_leader = []
            for key, future in self._request_offsets(asked, spec, isolation):
                try:
                    listed.offsets[key] = future.result().offset
                except KafkaException as error:
                    if error.args[0].name() in LEADER_ERRORS and time.monotonic() <= deadline:
                        without_leader.append(key)
                    else:
                        subject = f"topic {key[0]}, partition {key[1]}"
                        listed.failures[key] = self.failure(error.args[0], subject, "Describe")
            if not without_leader:
                return listed
            asked = without_leader
            time.sleep(0.05)

    def _request_offsets(
        self, keys: Iterable[Key], spec: OffsetSpec, isolation: IsolationLevel
    ) -> list[tuple[Key, Future[Any]]]:
        """All requests are sent before the first answer is awaited."""
        futures: list[tuple[Key, Future[Any]]] = []
        for some in in_parts(keys, PARTITIONS_PER_REQUEST):
            specs = {TopicPartition(*key): spec for key in some}
            requested = self.admin().list_offsets(specs, isolation_level=isolation, request_timeout=REQUEST_TIMEOUT_S)
            futures += [((each.topic, each.partition), future) for each, future in requested.items()]
        return futures

    @property
    def principal(self) -> str:
        """The user for the brokers, as far as the client knows it."""
        protocol = self.properties.get("security.protocol", "").upper()
        if protocol.startswith("SASL"):
            user = self._token.user if self._token is not None else self.properties.get("sasl.username")
            return f"User:{user}" if user else "this user"
        has_certificate = any(name.startswith(("ssl.certificate.", "ssl.keystore.")) for name in self.properties)
        return "the user of this certificate" if protocol == "SSL" and has_certificate else "User:ANONYMOUS"

    def failure(self, error: KafkaError, subject: str = "", operation: str = "") -> Failure:
        """A Kafka error as a Failure. Connection errors include the last error that the client reported, refusals the
        operation that the user lacks."""
        line = explain(error, subject)
        if error.name() in CONNECTION_ERRORS:
            reported = self.last_error
            detail = (
                ""
                if reported is None or reported.name() in CONNECTION_ERRORS
                else f": {reported.str().split(' (after', maxsplit=1)[0]}"
            )
            line += f" [{self.bootstrap_servers}{detail}]"
        if error.name().endswith("_AUTHORIZATION_FAILED"):
            lacks = f": it needs {operation}" if operation else ""
            return NotAuthorized(line + lacks)
        if error.name() == "GROUP_ID_NOT_FOUND":
            return NoSuchGroup(line)
        if error.name() in NO_SUCH_TOPIC_ERRORS:
            return NoSuchTopic(line, subject.removeprefix("topic ").partition(",")[0])
        return Failure(line)


def close_consumer(consumer: Consumer, timeout_s: float) -> None:
    """Closes a consumer of the client library, which may wait for a response of the broker, or for ever after a batch
    that it cannot read. After the timeout it is left alone: it does not keep the process from ending."""
    closing = Thread(target=consumer.close, name="consumer-close", daemon=True)
    closing.start()
    closing.join(timeout_s)


def _create(kind: Any, settings: dict[str, Any]) -> Any:
    try:
        return kind(settings)
    except KafkaException as error:
        raise Failure(f"invalid client property: {error.args[0].str()}") from None
