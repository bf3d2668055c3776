"""Requests to the brokers of a cluster that librdkafka cannot make, over sockets of their own: to any broker that
answers, to the controller, or to a broker by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.admin.errors import AnswerTimeout, NotAuthorized, RefusedConnection, reason_of, unreachable
from odradek.admin.wire_request import TIMEOUT_S, Call, call
from odradek.conventions.addresses import split_addresses
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.protocol.schema import Request, Response

R = TypeVar("R", bound="Response")
Address = tuple[str, int]

ADVICE = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user is not authorized for the cluster",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user is not authorized for the topic",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition; `odradek topic list` shows the topics",
    ErrorCode.REQUEST_TIMED_OUT: "no controller answered in time; `odradek cluster status` shows the brokers",
    ErrorCode.NOT_CONTROLLER: "the controller has changed; run the command again",
}


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


def error_text(error_code: int, message: str | None, subject: str) -> str:
    """One line for an error of a broker: the subject, and advice or the broker's message."""
    error = ErrorCode(error_code)
    reason = ADVICE.get(error) or (message or "the broker refused the request").rstrip(".")
    return f"{subject}: {reason} ({error.name})"


def check(error_code: int, message: str | None, subject: str, operation: str = "") -> None:
    """Failure for an error of a broker, which names the operation that the user lacks."""
    if error_code:
        text = error_text(error_code, message, subject)
        if ErrorCode(error_code).name.endswith("_AUTHORIZATION_FAILED"):
            raise NotAuthorized(f"{text}: it needs {operation}" if operation else text)
        raise Failure(text)


class BrokerRequests:
    """Knows more brokers with each description of the cluster, so that it survives the death of those that were given
    to it."""

    def __init__(self, cluster: Cluster, timeout_s: float = TIMEOUT_S, call: Call = call) -> None:
        self.timeout_s = timeout_s
        self._call = call
        self._bootstrap_servers = cluster.bootstrap_servers
        self._secure = cluster.address
        self._addresses: list[Address] = [
            *split_addresses(cluster.bootstrap_servers)
        ]  # the one that answered last is the first
        self._controller: Address | None = None
        self._has_fenced_brokers = True  # DescribeCluster version 2

    def ask_any(self, request: Request, response_type: type[R], version: int, *, is_forwarded: bool = False) -> R:
        """The response of the first broker that answers; Failure if none does.

        A request that `is_forwarded` goes from the broker to the controller. AnswerTimeout if one broker does not
        answer it in time: the others would wait for the same controller.
        """
        reason = ""
        for address in list(self._addresses):
            try:
                response = self._call(self._secure(*address), request, response_type, version, self.timeout_s)
            except RefusedConnection:
                raise
            except Failure as failure:
                if is_forwarded and isinstance(failure, AnswerTimeout):
                    raise
                reason = reason_of(failure)
                continue
            self._addresses.remove(address)
            self._addresses.insert(0, address)
            return response
        raise unreachable(self._bootstrap_servers, reason)

    def ask_controller(self, request: Request, response_type: type[R], version: int) -> R:
        """Brokers of Odradek and of Kafka with KRaft forward the request; those with ZooKeeper before do not."""
        self.describe()
        if self._controller is None:
            return self.ask_any(request, response_type, version)
        return self._call(self._secure(*self._controller), request, response_type, version, self.timeout_s)

    def ask(self, broker: KnownBroker, request: Request, response_type: type[R], version: int) -> R:
        return self._call(self._secure(*broker.address), request, response_type, version, self.timeout_s)

    def describe(self) -> DescribedCluster:
        """The brokers, those that are fenced included, if the cluster lists them."""
        described = self._describe()
        check(described.error_code, described.error_message, "cluster")
        brokers = {
            each.broker_id: KnownBroker(each.broker_id, each.host, each.port, each.rack, each.is_fenced)
            for each in sorted(described.brokers, key=lambda each: each.broker_id)
        }
        live = [broker.address for broker in brokers.values() if not broker.is_fenced]
        self._addresses += [address for address in live if address not in self._addresses]
        controller = brokers.get(described.controller_id)
        is_live = controller is not None and not controller.is_fenced
        self._controller = controller.address if controller is not None and is_live else None
        controller_id = described.controller_id if described.controller_id >= 0 else None
        return DescribedCluster(described.cluster_id, controller_id, brokers)

    def _describe(self) -> DescribeClusterResponse:
        if self._has_fenced_brokers:
            request = DescribeClusterRequest(include_fenced_brokers=True)
            try:
                return self.ask_any(request, DescribeClusterResponse, 2)
            except RefusedConnection:
                raise
            except Failure:
                described = self.ask_any(DescribeClusterRequest(), DescribeClusterResponse, 0)
                self._has_fenced_brokers = False  # it answers, but not this version
                return described
        return self.ask_any(DescribeClusterRequest(), DescribeClusterResponse, 0)
