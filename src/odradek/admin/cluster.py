"""A cluster: its addresses and client properties, the topics that it describes, and the Kafka clients for it.

Requests go over connections of our own (`wire`). The client library produces, and is the member of a consumer group; it
is imported when it is used, which takes longer than most commands.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from odradek.admin.broker_requests import CHANGE_TIMEOUT_MS, TOPICS_PER_REQUEST, BrokerRequests, KnownBroker, in_parts
from odradek.admin.errors import AnswerTimeout, NoSuchTopic, NotAuthorized, broker_failure, check, explain, failure_of
from odradek.admin.offsets import EARLIEST, LATEST, Key, first_at, list_offsets
from odradek.admin.wire import TIMEOUT_S, KeptConnections, SecuredAddress
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import create_topics as creating
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

    from odradek.admin.security import BearerToken, WireSecurity

CONNECT_TIMEOUT_S = 3.0
METADATA_VERSION = 4  # of Kafka 1.0
CREATE_TOPICS_VERSION = 4  # of Apache Kafka 2.4, the first in which brokers choose the numbers that are −1
UNKNOWN_OPERATIONS = -(2**31)
TOKEN_MARGIN_S = 60.0  # before its end, in which a token is replaced
PYTHON_ONLY_PROPERTIES = frozenset(  # their values are Python functions and objects
    {"error_cb", "stats_cb", "throttle_cb", "oauth_cb", "logger", "on_delivery", "delivery.report.only.error"}
)
CONNECTION_ERRORS = frozenset({"_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_MSG_TIMED_OUT"})
UNKNOWN_PROPERTY = "No such configuration property"  # the beginning of librdkafka's message


class PartitionDescription(NamedTuple):
    """`leader` is None while no replica can serve requests."""

    id: int
    leader: KnownBroker | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class TopicDescription(NamedTuple):
    """`topic_id` is its base64 text, as librdkafka writes it, and the ledger of dead letters. Partitions are in order.
    `operations` are those that the user may do, None if they are not known."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    operations: frozenset[Operation] | None = None


def chosen_partitions(topic: TopicDescription, wanted: Sequence[int]) -> list[int]:
    """The wanted partitions of a topic, or all; Failure for one that does not exist."""
    existing = [partition.id for partition in topic.partitions]
    missing = sorted(set(wanted) - set(existing))
    if missing:
        has = f"partitions 0–{existing[-1]}" if len(existing) > 1 else "partition 0 only"
        raise Failure(f"topic {topic.name} has no partition {missing[0]}; it has {has}")
    return sorted(set(wanted)) or existing


def without_leader(topics: Iterable[TopicDescription]) -> set[Key]:
    """The partitions of which no replica can serve requests: one for their offsets would wait for its timeout."""
    return {(topic.name, each.id) for topic in topics for each in topic.partitions if each.leader is None}


class Cluster:
    """Addresses and client properties of a cluster. Threads may share it."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str], token: BearerToken | None = None) -> None:
        self.bootstrap_servers = properties.get("bootstrap.servers", bootstrap_servers)
        self.properties = dict(properties)
        self.last_error: KafkaError | None = None
        self.is_stopped: Callable[[], bool] = lambda: False  # ends readings of records, on other threads as well
        self.connections = KeptConnections()
        self._requests: BrokerRequests | None = None
        self._is_reachable = False
        self._security: WireSecurity | None = None
        self._security_lock = Lock()
        self._token = token
        self._fetched_token: BearerToken | None = None  # by client credentials

    def replace_token(self, token: BearerToken) -> None:
        """Connections that are opened later authenticate with this token."""
        with self._security_lock:
            self._token = token
            self._security = self._make_security(token)

    def check_reachable(self, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        """Failure unless one of the brokers accepts a connection with the cluster's TLS and SASL."""
        if not self._is_reachable:
            request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
            with contextlib.suppress(AnswerTimeout):  # requests wait for longer
                requests = BrokerRequests(self, timeout_s)
                requests.ask_any(request, MetadataResponse, METADATA_VERSION, is_forwarded=True)
            self._is_reachable = True

    def address(self, host: str, port: int) -> SecuredAddress:
        """The address of a broker with the cluster's TLS and SASL."""
        if not self._is_secured:
            return SecuredAddress(host, port, None)
        with self._security_lock:
            fetched = self._fetched_token
            has_ended = fetched is not None and fetched.expires_s - TOKEN_MARGIN_S < time.time()
            if self._security is None or has_ended:
                self._security = self._make_security(self._token or self._fetch_token())
            return SecuredAddress(host, port, self._security)

    @property
    def _is_secured(self) -> bool:
        return self.properties.get("security.protocol", "plaintext").lower() != "plaintext"

    def _make_security(self, token: BearerToken | None) -> WireSecurity | None:
        from odradek.admin.security import wire_security  # noqa: PLC0415 - plain connections work without ssl

        return wire_security(self.properties, token) if self._is_secured else None

    def _fetch_token(self) -> BearerToken | None:
        if "sasl.oauthbearer.method" in self.properties:
            from odradek.admin import oidc_token  # noqa: PLC0415 - few clusters need it, and it loads urllib

            if oidc_token.uses_client_credentials(self.properties):
                self._fetched_token = oidc_token.fetch_token(self.properties)
        return self._fetched_token

    @property
    def requests(self) -> BrokerRequests:
        """The requests that all threads share. Failure if no broker can be reached."""
        self.check_reachable()
        if self._requests is None:
            self._requests = BrokerRequests(self)
        return self._requests

    @property
    def principal(self) -> str:
        """The user for the brokers, as far as the client knows it."""
        protocol = self.properties.get("security.protocol", "").upper()
        if protocol.startswith("SASL"):
            user = self._token.user if self._token is not None else self.properties.get("sasl.username")
            return f"User:{user}" if user else "this user"
        has_certificate = any(name.startswith(("ssl.certificate.", "ssl.keystore.")) for name in self.properties)
        return "the user of this certificate" if protocol == "SSL" and has_certificate else "User:ANONYMOUS"

    def may(self, operation: Operation) -> bool:
        """Whether the user has this right to the cluster. Lists leave out what the user may not describe."""
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        described = self.requests.ask_any(request, DescribeClusterResponse, 0)
        check(described.error_code, described.error_message, "cluster")
        return operation in (operations_of(described.cluster_authorized_operations) or ())

    # Topics

    def topics(self) -> list[TopicDescription]:
        """All topics that the user may see, by name."""
        brokers, answer = self.requests.metadata(None)
        return sorted((_description(each, brokers) for each in answer.topics), key=lambda topic: topic.name)

    def topic_names(self, timeout_s: float = TIMEOUT_S) -> list[str]:
        self.check_reachable(min(timeout_s, CONNECT_TIMEOUT_S))
        _brokers, answer = BrokerRequests(self, timeout_s).metadata(None)
        return sorted(each.name or "" for each in answer.topics)

    def create_topic(
        self, name: str, partitions: int = -1, replication_factor: int = -1, configs: Mapping[str, str] | None = None
    ) -> bool:
        """False if the topic already exists. The broker chooses numbers that are −1."""
        settings = [creating.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
        topic = creating.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replication_factor, configs=settings
        )
        request = creating.CreateTopicsRequest(topics=[topic], timeout_ms=CHANGE_TIMEOUT_MS)
        (result,) = self.requests.ask_controller(request, creating.CreateTopicsResponse, CREATE_TOPICS_VERSION).topics
        if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            return False
        check(result.error_code, result.error_message, f"topic {name}", "Create")
        return True

    def describe_topic(self, name: str, *, with_operations: bool = False) -> TopicDescription:
        """The topic's partitions; Failure if it does not exist."""
        return self.describe_topics([name], with_operations=with_operations)[0]

    def has_topic(self, name: str) -> bool:
        """Whether the topic exists; True if the broker does not say."""
        try:
            self.describe_topic(name)
        except Failure as failure:
            return not isinstance(failure, NoSuchTopic)
        return True

    def find_topics(self, names: Iterable[str]) -> list[TopicDescription]:
        """The topics among these that exist and that the user may see."""
        found: list[TopicDescription] = []
        for result in self._describe_topics(names):
            if isinstance(result, TopicDescription):
                found.append(result)
            elif not isinstance(result, NoSuchTopic | NotAuthorized):
                raise result
        return found

    def describe_topics(self, names: Iterable[str], *, with_operations: bool = False) -> list[TopicDescription]:
        found: list[TopicDescription] = []
        for result in self._describe_topics(names, with_operations=with_operations):
            if isinstance(result, Failure):
                raise result
            found.append(result)
        return found

    def _describe_topics(
        self, names: Iterable[str], *, with_operations: bool = False
    ) -> list[TopicDescription | Failure]:
        results: list[TopicDescription | Failure] = []
        for some in in_parts(dict.fromkeys(names), TOPICS_PER_REQUEST):
            brokers, answer = self.requests.metadata(some, with_operations=with_operations)
            by_name = {each.name: each for each in answer.topics}
            results += [
                broker_failure(topic.error_code, None, f"topic {topic.name}", "Describe")
                if topic.error_code
                else _description(topic, brokers)
                for topic in (by_name[name] for name in some)
            ]
        return results

    def choose_partitions(self, topic: str, wanted: Sequence[int]) -> list[int]:
        """The wanted partitions of a topic, or all; Failure for one that does not exist."""
        return chosen_partitions(self.describe_topic(topic), wanted)

    # Offsets by partition of one topic; Failure if one of them is not known.

    def earliest_offsets(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return self.offsets_at(topic, partitions, EARLIEST)

    def latest_offsets(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return self.offsets_at(topic, partitions, LATEST)

    def last_stable_offsets(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset of an open transaction; the high watermark if no transaction is open."""
        return self.offsets_at(topic, partitions, LATEST, reads_committed=True)

    def offsets_at(
        self, topic: str, partitions: Iterable[int], time_ms: int, *, reads_committed: bool = False
    ) -> dict[int, int]:
        """Offset of the first record at or after a time; −1 if there is none."""
        keys = [(topic, partition) for partition in partitions]
        listed = list_offsets(self.requests, keys, time_ms, reads_committed=reads_committed)
        return {partition: offset for (_topic, partition), offset in listed.all().items()}

    def first_offsets(
        self, topic: str, time_ms: int, earliest: Mapping[int, int], latest: Mapping[int, int]
    ) -> dict[int, int]:
        """The first offset at or after a time by partition; the end where there is none."""
        bounds = ({(topic, partition): offset for partition, offset in each.items()} for each in (earliest, latest))
        return {partition: offset for (_, partition), offset in first_at(self.requests, time_ms, *bounds).items()}

    # The client library

    def producer(self, defaults: Mapping[str, Any], **callbacks: Any) -> Producer:
        from confluent_kafka import Producer  # noqa: PLC0415 - it takes longer than most commands

        return cast("Producer", _create(Producer, {**self.client_settings(defaults), **callbacks}))

    def consumer(self, defaults: Mapping[str, Any], required: Mapping[str, Any] | None = None) -> Consumer:
        """A consumer for `assign`: without a `group.id` in `defaults`, no group is joined and nothing is committed.

        Properties of the user take precedence over `defaults`, and `required` over those of the user.
        """
        from confluent_kafka import Consumer  # noqa: PLC0415 - the same

        settings = {
            "group.id": "odradek-cli",  # librdkafka requires a name; with assign() no group is joined
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            **defaults,
        }
        if not self.properties.get("group.id", "-"):
            raise Failure("-X group.id= is empty; leave it out")  # librdkafka would abort the process
        return cast("Consumer", _create(Consumer, {**self.client_settings(settings), **(required or {})}))

    def check_names(self, given: Iterable[str]) -> None:
        """Failure for a property of `-X` that the client library does not know: requests of our own ignore it."""
        from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - the same

        for name in given:
            _refuse_python_only(name)
            try:
                Producer({name: "", "logger": _silent_logger()})
            except KafkaException as error:
                if error.args[0].str().startswith(UNKNOWN_PROPERTY):
                    raise Failure(f"invalid client property: {error.args[0].str()}") from None

    def client_settings(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Properties of every client of the library. Those of the user take precedence."""
        self.check_reachable()
        for name in self.properties:
            _refuse_python_only(name)
        return {
            **({} if self._token is None else {"oauth_cb": self._give_token}),
            "client.id": "odradek-cli",
            "socket.connection.setup.timeout.ms": 5000,
            **defaults,
            "bootstrap.servers": self.bootstrap_servers,
            "error_cb": self._remember,
            "logger": _silent_logger(),
            **self.properties,
        }

    def _give_token(self, _config: str) -> tuple[str, float]:
        assert self._token is not None
        return self._token.value, self._token.expires_s

    def _remember(self, error: KafkaError) -> None:
        """The reason of a failure, such as a wrong password, is not replaced by its consequence."""
        if self.last_error is None or error.name() not in CONNECTION_ERRORS:
            self.last_error = error

    def failure(self, error: KafkaError, subject: str = "", operation: str = "") -> Failure:
        """An error of the client library as a Failure. Connection errors include the last error that the client
        reported, refusals the operation that the user lacks."""
        line = explain(error, subject)
        if error.name() in CONNECTION_ERRORS:
            reported, detail = self.last_error, ""
            if reported is not None and reported.name() not in CONNECTION_ERRORS:
                detail = f": {reported.str().split(' (after', maxsplit=1)[0]}"
            line += f" [{self.bootstrap_servers}{detail}]"
        return failure_of(error.name(), line, subject, operation)


def _description(topic: MetadataResponseTopic, brokers: Mapping[int, KnownBroker]) -> TopicDescription:
    partitions = []
    for each in sorted(topic.partitions, key=lambda each: each.partition_index):
        replicas = tuple(each.replica_nodes), tuple(each.isr_nodes)
        partitions.append(PartitionDescription(each.partition_index, brokers.get(each.leader_id), *replicas))
    topic_id = base64.b64encode(topic.topic_id.bytes).decode().rstrip("=")
    operations = operations_of(topic.topic_authorized_operations)
    return TopicDescription(topic.name or "", topic_id, topic.is_internal, tuple(partitions), operations)


def operations_of(bits: int) -> frozenset[Operation] | None:
    """Kafka's bit field of the operations that a user may do."""
    if bits == UNKNOWN_OPERATIONS:
        return None
    return frozenset(each for each in Operation if each > Operation.ALL and bits >> each & 1)


def close_consumer(consumer: Consumer, timeout_s: float) -> None:
    """Closes a consumer of the client library, which may wait for a response of the broker, or for ever after a batch
    that it cannot read. After the timeout it is left alone: it does not keep the process from ending."""
    closing = Thread(target=consumer.close, name="consumer-close", daemon=True)
    closing.start()
    closing.join(timeout_s)


def _refuse_python_only(name: str) -> None:
    if name in PYTHON_ONLY_PROPERTIES:
        raise Failure(f"-X {name} is not a property that can be set on a command line")


def _silent_logger() -> logging.Logger:
    silent = logging.getLogger("odradek.cli.librdkafka")
    silent.propagate = False
    silent.addHandler(logging.NullHandler())
    return silent


def _create(kind: Any, settings: dict[str, Any]) -> Any:
    from confluent_kafka import KafkaException  # noqa: PLC0415 - the same

    try:
        return kind(settings)
    except KafkaException as error:
        raise Failure(f"invalid client property: {error.args[0].str()}") from None
