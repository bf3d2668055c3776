"""A broker hosts some partitions of a topic: those that are led, or have their replicas, elsewhere."""

from odradek.metadata.changes import PartitionsChanged
from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.replica.leadership import Leadership
from odradek.server.coordination import SingleBroker
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import (
    BY_NAME,
    base_offsets,
    batch,
    begin_fetch,
    create_topic,
    delete_records,
    fetch,
    fetch_all,
    fetch_request,
    list_offset,
    partitions_of,
    produce,
    produce_request,
    wanted,
)

HERE, ELSEWHERE, NO_LEADER = 0, 7, -1
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def change_partition(
    broker: SimulatedBroker, name: str, index: int, *, leader: int, replicas: tuple[int, ...]
) -> PartitionImage:
    """Commit a new leader and new replicas of a partition; they are in sync."""
    return broker.run(begin_change(broker, name, index, leader=leader, replicas=replicas))


async def begin_change(
    broker: SimulatedBroker, name: str, index: int, *, leader: int, replicas: tuple[int, ...]
) -> PartitionImage:
    topic = broker.services.image.topics[name]
    old = topic.partitions[index]
    new = PartitionImage(index, replicas, replicas, leader, old.leader_epoch + 1, old.partition_epoch + 1)
    change = PartitionsChanged(topic.topic_id, (new,))
    alone = broker.node._coordination
    assert isinstance(alone, SingleBroker)
    _, version = await alone.controller._writer.write(lambda _: (None, [change]))
    await alone.metadata.wait_until_applied(version)
    return new


def test_a_partition_with_all_replicas_elsewhere_is_not_hosted(broker: SimulatedBroker, name: str) -> None:
    topic_id = create_topic(broker, name, 3)
    change_partition(broker, name, 1, leader=ELSEWHERE, replicas=(ELSEWHERE,))
    table = broker.services.partitions
    hosted = table.topic(name)
    assert hosted is not None
    assert [*hosted] == [0, 2]
    assert table.find(name, 1) is None
    broker.run(table.removals.settle())
    assert f"{name}-1" not in broker.simulation.disk.list_directory("/data")
    for index, error in enumerate([ErrorCode.NONE, NOT_LEADER, ErrorCode.NONE]):
        assert produce(broker, name, partition=index).error_code == error
        assert produce(broker, topic_id, partition=index).error_code == error
        assert fetch(broker, name, partition=index).error_code == error
        assert fetch(broker, topic_id, partition=index).error_code == error
        assert list_offset(broker, name, -1, partition=index).error_code == error
        assert delete_records(broker, name, 0, partition=index).error_code == error
    assert broker.partition(name, 2).index == 2, "an index is not a position"
    assert produce(broker, name, partition=3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.restart()
    assert [*(broker.services.partitions.topic(name) or {})] == [0, 2]
    assert [list_offset(broker, name, -1, partition=index).offset for index in (0, 2)] == [2, 2]


def test_a_topic_with_no_partition_here_is_led_elsewhere(broker: SimulatedBroker, name: str) -> None:
    topic_id = create_topic(broker, name)
    change_partition(broker, name, 0, leader=ELSEWHERE, replicas=(ELSEWHERE,))
    assert broker.services.partitions.topic(name) is None
    assert produce(broker, name).error_code == NOT_LEADER
    assert produce(broker, topic_id).error_code == NOT_LEADER
    assert fetch(broker, topic_id).error_code == NOT_LEADER


def test_a_partition_that_comes_back_begins_with_an_empty_log(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name)
    change_partition(broker, name, 0, leader=ELSEWHERE, replicas=(ELSEWHERE,))
    change_partition(broker, name, 0, leader=HERE, replicas=(HERE,))
    assert produce(broker, name).base_offset == 0


def test_clients_are_given_the_leader(broker: SimulatedBroker, name: str) -> None:
    topic_id = create_topic(broker, name)
    image = change_partition(broker, name, 0, leader=ELSEWHERE, replicas=(HERE, ELSEWHERE))
    answer = broker.call(produce_request([(topic_id, 0, batch())]), ProduceResponse)
    refused = answer.responses[0].partition_responses[0]
    assert refused.error_code == NOT_LEADER
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (ELSEWHERE, image.leader_epoch)
    assert answer.node_endpoints == [], "the address of a broker that is not registered is unknown"
    by_fetch = partitions_of(fetch_all(broker, fetch_request([wanted(topic_id, 0)]), 18))[0]
    assert (by_fetch.error_code, by_fetch.current_leader.leader_id) == (NOT_LEADER, ELSEWHERE)
    before_hints = broker.call(produce_request([(name, 0, batch())]), ProduceResponse, 9)
    assert before_hints.responses[0].partition_responses[0].current_leader.leader_id == -1


def test_a_follower_keeps_its_log_and_serves_no_clients(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name)
    for leader, leadership in ((ELSEWHERE, Leadership.FOLLOWER), (NO_LEADER, Leadership.NONE)):
        change_partition(broker, name, 0, leader=leader, replicas=(HERE, ELSEWHERE))
        partition = broker.partition(name)
        assert (partition.leadership, partition.is_online, partition.is_leader) == (leadership, True, False)
        assert produce(broker, name).error_code == NOT_LEADER
    change_partition(broker, name, 0, leader=HERE, replicas=(HERE,))
    assert produce(broker, name).base_offset == 1
    assert base_offsets(fetch(broker, name).records) == [0, 1]


def test_a_follower_describes_producers(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    change_partition(broker, name, 0, leader=ELSEWHERE, replicas=(HERE, ELSEWHERE))
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0])])
    (described,) = broker.call(request, DescribeProducersResponse, 0).topics[0].partitions
    assert (described.error_code, described.active_producers) == (ErrorCode.NONE, [])


def test_a_waiting_fetch_is_answered_when_the_leader_changes(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    waiting = begin_fetch(broker, fetch_request([wanted(name, 0)], max_wait_ms=60_000, min_bytes=1))
    began_ms = broker.elapsed_ms()
    change_partition(broker, name, 0, leader=ELSEWHERE, replicas=(HERE, ELSEWHERE))
    assert partitions_of(waiting.result())[0].error_code == NOT_LEADER
    assert broker.elapsed_ms() - began_ms < 1000


def test_a_waiting_produce_request_is_answered_when_the_leader_changes(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    change_partition(broker, name, 0, leader=HERE, replicas=(HERE, ELSEWHERE))
    waiting = broker.begin(produce_request([(name, 0, batch())]), ProduceResponse, BY_NAME)
    assert not waiting.task.done()
    change_partition(broker, name, 0, leader=ELSEWHERE, replicas=(HERE, ELSEWHERE))
    assert waiting.result().responses[0].partition_responses[0].error_code == NOT_LEADER
