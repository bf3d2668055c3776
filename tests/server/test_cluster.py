"""Real brokers and a real ZooKeeper: registration, one controller, one metadata, and what outages leave alone."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.testing import BrokerError, RunningBroker, RunningZooKeeper, zookeeper
from tests.metrics.exposed import exposed
from tests.waiting import eventually
from tests.wire import WireClient

WAIT_S = 60


def member(server: RunningZooKeeper, node_id: int, **more: str | int) -> RunningBroker:
    properties = {
        "zookeeper.connect": f"{server.connect}/clusters/test",
        "node.id": node_id,
        "broker.rack": f"rack-{node_id}",
        "offsets.topic.replication.factor": 1,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return RunningBroker(properties)


class Cluster:
    def __init__(self, server: RunningZooKeeper, resources: ExitStack, broker_count: int = 3) -> None:
        self.server = server
        self.brokers = [member(server, node_id) for node_id in range(1, broker_count + 1)]
        for broker in self.brokers:
            resources.callback(broker.close)
            broker.start()

    def view_of(self, broker: RunningBroker) -> ClusterMetadata:
        return AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=WAIT_S)

    def wait_for(self, broker: RunningBroker, condition: Callable[[ClusterMetadata], bool]) -> ClusterMetadata:
        deadline = time.monotonic() + WAIT_S
        while not condition(found := self.view_of(broker)):
            assert time.monotonic() < deadline, (found.controller_id, found.brokers, found.topics)
            time.sleep(0.05)  # a poll's pause
        return found

    def create_topic(self, name: str, partitions: int = 3) -> None:
        """On the controller, which the client finds in the metadata. All running brokers then show the topic."""
        running = [broker for broker in self.brokers if broker.is_running]
        admin = AdminClient({"bootstrap.servers": ",".join(broker.bootstrap_servers for broker in running)})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(WAIT_S)
        for broker in running:
            self.wait_for(broker, lambda view: name in view.topics)

    def controller(self) -> RunningBroker:
        return self.brokers[self.view_of(self.brokers[0]).controller_id - 1]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """All its brokers run before and after each test."""
    with ExitStack() as resources:
        yield Cluster(resources.enter_context(zookeeper()), resources)


def produce(broker: RunningBroker, topic: str, partitions: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number), partition=number % partitions)
    assert producer.flush(WAIT_S) == 0


def consume(broker: RunningBroker, topic: str, partitions: int, count: int) -> set[int]:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: set[int] = set()
    deadline = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < deadline:
        record = consumer.poll(1)
        if record is not None and record.error() is None:
            found.add(int(record.value() or b""))
    consumer.close()
    return found


@pytest.mark.timeout(300)
def test_brokers_are_one_cluster_with_one_controller(cluster: Cluster) -> None:
    views = [cluster.wait_for(broker, lambda view: set(view.brokers) == {1, 2, 3}) for broker in cluster.brokers]
    assert len({view.cluster_id for view in views}) == 1
    cluster.create_topic("spread")
    partitions = cluster.view_of(cluster.brokers[2]).topics["spread"].partitions
    assert {partition.leader for partition in partitions.values()} == {1, 2, 3}
    produce(cluster.brokers[1], "spread", 3, 30)
    assert consume(cluster.brokers[2], "spread", 3, 30) == set(range(30))


@pytest.mark.timeout(300)
def test_another_broker_becomes_controller_when_it_stops(cluster: Cluster) -> None:
    cluster.create_topic("before")
    produce(cluster.brokers[0], "before", 3, 30)
    controller = cluster.controller()
    others = [broker for broker in cluster.brokers if broker is not controller]
    node_id = cluster.brokers.index(controller) + 1
    controller.stop()
    for broker in others:
        cluster.wait_for(broker, lambda view: view.controller_id != node_id and node_id not in view.brokers)
    cluster.create_topic("between", 2)
    controller.start()
    found = cluster.wait_for(controller, lambda view: set(view.brokers) == {1, 2, 3})
    assert found.controller_id != node_id
    assert set(found.topics) >= {"before", "between"}
    assert consume(others[0], "before", 3, 30) == set(range(30))


@pytest.mark.timeout(300)
def test_killed_controller_returns_without_waiting_for_its_session(cluster: Cluster) -> None:
    controller = cluster.controller()
    controller.kill()
    controller.start()
    for broker in cluster.brokers:
        cluster.wait_for(broker, lambda view: set(view.brokers) == {1, 2, 3})
    cluster.create_topic("after-kill")


@pytest.mark.more
@pytest.mark.timeout(300)
def test_records_flow_while_zookeeper_is_away(cluster: Cluster) -> None:
    cluster.create_topic("flow")
    cluster.server.kill()
    produce(cluster.brokers[1], "flow", 3, 30)
    assert consume(cluster.brokers[2], "flow", 3, 30) == set(range(30))
    cluster.server.start()
    # A broker whose session has expired meanwhile registers again: until then its id is free.
    eventually(lambda: all(exposed(each).value("odradek_zookeeper_connected") for each in cluster.brokers))
    cluster.create_topic("after-outage")
    for broker in cluster.brokers:
        cluster.wait_for(broker, lambda view: set(view.brokers) == {1, 2, 3})


@pytest.mark.timeout(300)
def test_any_broker_forwards_what_the_controller_decides(cluster: Cluster) -> None:
    controller = cluster.controller()
    other = next(broker for broker in cluster.brokers if broker is not controller)
    with WireClient(other.port) as client:
        request = CreateTopicsRequest(topics=[CreatableTopic(name="forwarded", num_partitions=1, replication_factor=3)])
        (result,) = client.call(request, CreateTopicsResponse, 7).topics
    assert result.error_code == ErrorCode.NONE
    assert "forwarded" in cluster.view_of(other).topics


@pytest.mark.timeout(300)
def test_broker_with_an_id_in_use_does_not_start(cluster: Cluster) -> None:
    with (
        closing(member(cluster.server, 2, zookeeper_session_timeout_ms=1000)) as second,
        pytest.raises(BrokerError, match=r"give this one another node\.id"),
    ):
        second.start()


def test_broker_without_zookeeper_says_so() -> None:
    broker = RunningBroker({"zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": 200})
    with pytest.raises(BrokerError, match=r"correct zookeeper\.connect"):
        broker.start()
    broker.close()
