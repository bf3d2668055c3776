"""Brokers in threads that answer what a watch of the console asks, and can be made to hang, to refuse and to lie."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any, cast

from odradek.admin.cluster import Cluster
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_broker_metrics import (
    DescribeBrokerMetricsRequest,
    DescribeBrokerMetricsResponse,
)
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumPartitionResult,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopicResult,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.protocol.schema import Request, Response

REQUESTS: dict[int, type[Request]] = {
    each.api_key: each
    for each in (
        ApiVersionsRequest,
        DescribeBrokerMetricsRequest,
        DescribeClusterRequest,
        DescribeConfigsRequest,
        DescribeLogDirsRequest,
        DescribeQuorumRequest,
        ListOffsetsRequest,
        ListPartitionReassignmentsRequest,
        MetadataRequest,
    )
}
FORWARDED = (DescribeQuorumRequest, ListPartitionReassignmentsRequest)
TOPIC = "orders"


class FakeBroker:
    """Accepts connections until it is closed. A broker that hangs accepts them, too, as a stopped process does."""

    def __init__(self, cluster: FakeCluster, broker_id: int) -> None:
        self.broker_id = broker_id
        self.accepted = 0
        self.requests: list[int] = []  # their API keys
        self.goes_on = threading.Event()
        self.goes_on.set()
        self._cluster = cluster
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.goes_on.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.close_connections()

    def close_connections(self) -> None:
        while self._open:
            with contextlib.suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _address = self._listener.accept()
                self.accepted += 1
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            while size := stream.read(4):
                frame = stream.read(int.from_bytes(size, "big"))
                self.goes_on.wait()
                api_key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
                self.requests.append(api_key)
                request_type = REQUESTS[api_key]
                is_flexible = request_type.is_flexible(version)
                body = 10 + int.from_bytes(frame[8:10], "big") + is_flexible
                response = self._cluster.answer(self, request_type.decode(memoryview(frame), body, version))
                tags = b"\0" if response.is_flexible(version) and request_type is not ApiVersionsRequest else b""
                answer = frame[4:8] + tags + b"".join(cast("list[bytes]", response.encode(version)))
                connection.sendall(len(answer).to_bytes(4, "big") + answer)


class FakeCluster:
    """One topic, with a partition that each broker leads. Its records are as many as `ends`, for each partition."""

    def __init__(self, brokers: int) -> None:
        self.brokers = [FakeBroker(self, broker_id) for broker_id in range(1, brokers + 1)]
        self.ends = 100
        self.controller_id = 1
        self.quorum_leader: int | None = None  # of a KRaft cluster
        self.serves_metrics = False
        self.has_controller = True  # without one, a request that Apache Kafka forwards to it gets no answer
        self._is_closed = threading.Event()
        self.overrides: dict[type[Request], Callable[[FakeBroker, Any], Response]] = {}

    def client(self) -> Cluster:
        return Cluster(",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers), {})

    def close(self) -> None:
        self._is_closed.set()
        for broker in self.brokers:
            broker.close()

    def answer(self, broker: FakeBroker, request: Any) -> Response:
        if not self.has_controller and isinstance(request, FORWARDED):
            self._is_closed.wait()
        override = self.overrides.get(type(request))
        return override(broker, request) if override is not None else self.usual_answer(broker, request)

    def usual_answer(self, broker: FakeBroker, request: Any) -> Response:
        match request:
            case DescribeClusterRequest():
                brokers = [
                    DescribeClusterBroker(broker_id=each.broker_id, host="127.0.0.1", port=each.port)
                    for each in self.brokers
                ]
                return DescribeClusterResponse(cluster_id="fake", controller_id=self.controller_id, brokers=brokers)
            case MetadataRequest():
                ids = [each.broker_id for each in self.brokers]
                partitions = [
                    MetadataResponsePartition(partition_index=index, leader_id=leader, replica_nodes=ids, isr_nodes=ids)
                    for index, leader in enumerate(ids)
                ]
                return MetadataResponse(topics=[MetadataResponseTopic(name=TOPIC, partitions=partitions)])
            case ListOffsetsRequest():
                return ListOffsetsResponse(topics=[self._offsets(each) for each in request.topics])
            case ApiVersionsRequest():
                served: list[type[Request]] = [DescribeClusterRequest, DescribeLogDirsRequest]
                served += [DescribeBrokerMetricsRequest] if self.serves_metrics else []
                served += [DescribeQuorumRequest] if self.quorum_leader is not None else []
                return ApiVersionsResponse(
                    api_keys=[
                        ApiVersion(api_key=each.api_key, min_version=each.versions[0], max_version=each.versions[1])
                        for each in served
                    ]
                )
            case DescribeBrokerMetricsRequest():
                return DescribeBrokerMetricsResponse(broker_id=broker.broker_id, time_ms=1_000)
            case DescribeQuorumRequest():
                found = DescribeQuorumPartitionResult(
                    leader_id=-1 if self.quorum_leader is None else self.quorum_leader
                )
                return DescribeQuorumResponse(topics=[DescribeQuorumTopicResult(partitions=[found])])
            case DescribeConfigsRequest():
                return DescribeConfigsResponse()
            case DescribeLogDirsRequest():
                return DescribeLogDirsResponse()
            case _:
                return ListPartitionReassignmentsResponse()

    def _offsets(self, topic: Any) -> ListOffsetsTopicResponse:
        return ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                ListOffsetsPartitionResponse(
                    partition_index=each.partition_index, offset=0 if each.timestamp == -2 else self.ends
                )
                for each in topic.partitions
            ],
        )


@contextlib.contextmanager
def fake_cluster(brokers: int = 3) -> Iterator[FakeCluster]:
    cluster = FakeCluster(brokers)
    try:
        yield cluster
    finally:
        cluster.close()
