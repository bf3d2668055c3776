"""Requests to the brokers of a cluster: to any broker that answers, to the controller, to a broker by its id, or to the
coordinator of a group or a transactional id.

Requests about many topics or partitions are sent in parts: a broker of Odradek closes the connection of a request with
too many elements (`Message.elements_per_level`), and a part is answered within the time limit of a request.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from odradek.admin.errors import AnswerTimeout, NotAuthorized, RefusedConnection, UnsupportedRequest, check, reason_of
from odradek.admin.wire import TIMEOUT_S, KeptConnections, SecuredAddress, Versions
from odradek.conventions.addresses import split_addresses
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import describe_configs
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

if TYPE_CHECKING:
    from odradek.protocol.schema import Request, Response

R = TypeVar("R", bound="Response")
T = TypeVar("T")
Address = tuple[str, int]

METADATA_VERSION = 10  # of Apache Kafka 2.8: the first with ids of topics, the last with operations of the cluster
GROUP, TRANSACTION = 0, 1  # kinds of coordinators
TOPICS_PER_REQUEST = 1_000
PARTITIONS_PER_REQUEST = 2_000
COORDINATORS_PER_REQUEST = 100
CHANGE_TIMEOUT_MS = 12_000  # of the controller, so that its answer comes before the timeout of the request
RETRY_PAUSE_S = 0.1
RETRIED = frozenset({
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
})  # fmt: skip
NOT_OF_THE_BROKER = (NotAuthorized, RefusedConnection, UnsupportedRequest)  # other brokers would repeat them


def in_parts(items: Iterable[T], size: int = PARTITIONS_PER_REQUEST) -> Iterator[list[T]]:
    """The items in lists of at most `size`; without it, items are partitions."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def by_topic(partitions: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Partitions, each with its topic, as requests list them."""
    topics: dict[str, list[T]] = defaultdict(list)
    for topic, partition in partitions:
        topics[topic].append(partition)
    return topics


class KnownBroker(NamedTuple):
    """`is_fenced` when the cluster has excluded the broker: it is down, or about to take part again."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool

    @property
    def address(self) -> Address:
        return self.host, self.port


class DescribedCluster(NamedTuple):
    """`controller_id` is None without a controller, and while `knows_controller` is false."""

    cluster_id: str
    controller_id: int | None
    brokers: dict[int, KnownBroker]
    knows_controller: bool = True


def live(brokers: Mapping[int, KnownBroker]) -> list[KnownBroker]:
    """The brokers that the cluster has not fenced."""
    return [each for each in brokers.values() if not each.is_fenced]


def answers_of(
    brokers: Iterable[KnownBroker], ask: Callable[[KnownBroker], T], raised: tuple[type[Failure], ...] = ()
) -> tuple[list[T], dict[int, Failure]]:
    """What the brokers answer, and by id why others do not. Failures of the kinds in `raised` are raised."""
    found: list[T] = []
    failures: dict[int, Failure] = {}
    for broker in brokers:
        try:
            found.append(ask(broker))
        except raised:
            raise
        except Failure as failure:
            failures[broker.broker_id] = failure
    return found, failures


def ask_each(
    brokers: Iterable[KnownBroker], ask: Callable[[KnownBroker], T], missing: dict[int, str] | None = None
) -> list[T]:
    """What the brokers answer. Why one does not answer is added to `missing`; without it, that is a Failure. Failure if
    none answers, and for a refusal that is not the broker's own."""
    if missing is None:
        return [ask(broker) for broker in brokers]
    found, failures = answers_of(brokers, ask, NOT_OF_THE_BROKER)
    missing |= {broker_id: failure.message for broker_id, failure in failures.items()}
    if failures and not found:
        raise next(reversed(failures.values()))
    return found


def ask_loaded(
    requests: BrokerRequests, broker: KnownBroker, request: Request, response_type: type[R], version: Versions,
    things: str,
) -> R:  # fmt: skip
    """What a broker answers about all things that it coordinates, once it has loaded them."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        answer: Any = requests.ask(broker, request, response_type, version)
        if answer.error_code not in RETRIED or time.monotonic() > deadline:
            check(answer.error_code, None, f"{things} of broker {broker.broker_id}")
            return cast("R", answer)
        time.sleep(RETRY_PAUSE_S)


class Reached(Protocol):
    """Where a cluster is: `cluster.Cluster`."""

    bootstrap_servers: str
    connections: KeptConnections

    def address(self, host: str, port: int) -> SecuredAddress: ...


class BrokerRequests:
    """Knows more brokers with each description of the cluster, so that it survives the death of those that were given
    to it. Threads may share it; without `call`, connections are those of the cluster."""

    def __init__(self, cluster: Reached, timeout_s: float = TIMEOUT_S, call: KeptConnections | None = None) -> None:
        self.timeout_s = timeout_s
        self._call = cluster.connections if call is None else call
        self._bootstrap_servers = cluster.bootstrap_servers
        self._secure = cluster.address
        # The one that answered last is the first.
        self._addresses: tuple[Address, ...] = tuple(split_addresses(cluster.bootstrap_servers))
        self._controller: Address | None = None

    def ask_any(self, request: Request, response_type: type[R], version: Versions, *, is_forwarded: bool = False) -> R:
        """The response of the first broker that answers; Failure if none does.

        A request that `is_forwarded` goes from the broker to the controller. AnswerTimeout if one broker does not
        answer it in time: the others would wait for the same controller.
        """
        reason = ""
        for address in self._addresses:
            try:
                response = self._call(self._secure(*address), request, response_type, version, self.timeout_s)
            except (RefusedConnection, UnsupportedRequest):
                raise
            except Failure as failure:
                if is_forwarded and isinstance(failure, AnswerTimeout):
                    raise
                reason = reason_of(failure)
                continue
            self._addresses = (address, *(each for each in self._addresses if each != address))
            return response
        raise Failure(
            f"no broker answers at {self._bootstrap_servers} ({reason}); start one with `odradek broker`, "
            "or give another address with --bootstrap-server"
        )

    def ask_controller(self, request: Request, response_type: type[R], version: Versions) -> R:
        """Brokers of Odradek and of Kafka with KRaft forward the request; those with ZooKeeper before do not."""
        self.describe()
        if self._controller is None:
            return self.ask_any(request, response_type, version)
        return self._call(self._secure(*self._controller), request, response_type, version, self.timeout_s)

    def ask(self, broker: KnownBroker, request: Request, response_type: type[R], version: Versions) -> R:
        return self._call(self._secure(*broker.address), request, response_type, version, self.timeout_s)

    def ask_coordinators(
        self, names: Iterable[str], ask: Callable[[KnownBroker, list[str]], Mapping[str, T | int]],
        *, kind: int = GROUP, patience_s: float = TIMEOUT_S,
    ) -> dict[str, T | int]:  # fmt: skip
        """What `ask` returns for the names of each coordinator, or error codes that do not pass by themselves."""
        results: dict[str, T | int] = {}
        asked = list(names)
        deadline = time.monotonic() + patience_s
        while asked:
            coordinators, errors = self.find_coordinators(asked, kind)
            results |= errors
            for coordinator, of_coordinator in coordinators.items():
                results |= ask(coordinator, of_coordinator)
            asked = [name for name in asked if isinstance(code := results.get(name), int) and code in RETRIED]
            if not asked or time.monotonic() > deadline:
                break
            time.sleep(RETRY_PAUSE_S)
        return results

    def find_coordinators(
        self, names: Iterable[str], kind: int = GROUP
    ) -> tuple[dict[KnownBroker, list[str]], dict[str, int]]:
        """The groups or transactional ids of each coordinator, and the error codes of those that have none."""
        found: dict[KnownBroker, list[str]] = defaultdict(list)
        errors = {}
        for some in in_parts(names, COORDINATORS_PER_REQUEST):
            request = FindCoordinatorRequest(coordinator_keys=some, key_type=kind)
            for each in self.ask_any(request, FindCoordinatorResponse, 4).coordinators:
                if each.error_code:
                    errors[each.key] = each.error_code
                else:
                    broker = KnownBroker(each.node_id, each.host, each.port, None, is_fenced=False)
                    found[broker].append(each.key)
        return found, errors

    def describe(self) -> DescribedCluster:
        """The brokers, those that are fenced included, if the cluster lists them."""
        request = DescribeClusterRequest(include_fenced_brokers=True)  # from version 2 on, of Apache Kafka 4.0
        described = self.ask_any(request, DescribeClusterResponse, (2, 1, 0))
        check(described.error_code, described.error_message, "cluster")
        brokers = {
            each.broker_id: KnownBroker(each.broker_id, each.host, each.port, each.rack, each.is_fenced)
            for each in sorted(described.brokers, key=lambda each: each.broker_id)
        }
        self._learn(live(brokers))
        controller = brokers.get(described.controller_id)
        self._controller = controller.address if controller is not None and not controller.is_fenced else None
        controller_id = described.controller_id if described.controller_id >= 0 else None
        return DescribedCluster(described.cluster_id, controller_id, brokers)

    def _learn(self, brokers: Iterable[KnownBroker]) -> None:
        known = self._addresses
        new = dict.fromkeys(each.address for each in brokers if each.address not in known)
        if new:
            self._addresses = (*known, *new)

    def metadata(
        self, topics: Sequence[str] | None, *, with_operations: bool = False
    ) -> tuple[dict[int, KnownBroker], MetadataResponse]:
        """The live brokers by id, and the metadata of these topics, or of all. No topic is created."""
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=each) for each in topics],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=with_operations,
        )
        answer = self.ask_any(request, MetadataResponse, METADATA_VERSION)
        brokers = {
            each.node_id: KnownBroker(each.node_id, each.host, each.port, each.rack, is_fenced=False)
            for each in answer.brokers
        }
        self._learn(brokers.values())
        return brokers, answer


def describe_resources(
    requests: BrokerRequests, kind: int, names: Iterable[str], settings: Sequence[str] | None = None
) -> Iterator[describe_configs.DescribeConfigsResult]:
    """What any broker returns for each of the resources: these settings, or all. Kinds are those of DescribeConfigs."""
    keys = None if settings is None else list(settings)
    for some in in_parts(names, TOPICS_PER_REQUEST):
        resources = [
            describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for name in some
        ]
        request = describe_configs.DescribeConfigsRequest(resources=resources)
        yield from requests.ask_any(request, describe_configs.DescribeConfigsResponse, 4).results
