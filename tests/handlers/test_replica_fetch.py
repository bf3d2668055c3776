"""Fetches of followers: what they may read, what the leader learns, and that no client can pretend to be one."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.sentinels import NO_OFFSET
from odradek.replica.partition import Partition
from odradek.replica.replication_throttle import ReplicationThrottle
from odradek.security.authorizer import Operation
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import (
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
    size_of,
    wanted,
)
from tests.replica.fake_replication import FakeReplication
from tests.security.authorizers import AllowsOnly

FOLLOWER, OTHER_FOLLOWER, STRANGER = 1, 2, 7
LATEST = -1
BY_TOPIC_ID = 18  # a version of Fetch


class Scene:
    """A partition that this broker leads, with two followers."""

    def __init__(self, broker: SimulatedBroker, name: str) -> None:
        self.broker = broker
        self.name = name
        self.topic_id: UUID = create_topic(broker, name)
        self.partition: Partition = broker.partition(name)
        self.epoch = 10
        self.lead((0, FOLLOWER, OTHER_FOLLOWER))

    def lead(self, in_sync: tuple[int, ...]) -> None:
        self.epoch += 1
        image = PartitionImage(0, (0, FOLLOWER, OTHER_FOLLOWER), in_sync, 0, self.epoch, self.epoch)
        assert self.partition.become_leader(image) is ErrorCode.NONE

    def shrink(self, in_sync: tuple[int, ...]) -> None:
        """In the same leader epoch."""
        assert self.partition.image is not None
        image = replace(self.partition.image, in_sync_replicas=in_sync, partition_epoch=self.epoch + 1)
        assert self.partition.become_leader(image) is ErrorCode.NONE

    def request(
        self,
        offset: int,
        replica: int = FOLLOWER,
        *,
        epoch: int | None = None,
        max_wait_ms: int = 0,
        session: tuple[int, int] = (0, -1),
    ) -> FetchRequest:
        each = wanted(self.topic_id, offset, epoch=self.epoch if epoch is None else epoch)
        return fetch_request([each], replica_id=replica, max_wait_ms=max_wait_ms, session=session)

    def fetch(self, offset: int, replica: int = FOLLOWER, *, epoch: int | None = None) -> PartitionData:
        request = self.request(offset, replica, epoch=epoch)
        return partitions_of(fetch_all(self.broker, request))[0]


@pytest.fixture
def scene(simulated: SimulatedBroker, name: str) -> Scene:
    return Scene(simulated, name)


def test_a_follower_reads_what_is_not_committed(scene: Scene) -> None:
    produce(scene.broker, scene.name, batch(b"a", b"b"), acks=1)
    assert scene.partition.high_watermark == 0
    assert size_of(fetch(scene.broker, scene.name)) == 0
    answer = scene.fetch(0)
    assert size_of(answer) > 0
    assert answer.high_watermark == 0


def test_fetches_of_all_members_commit_records(scene: Scene) -> None:
    produce(scene.broker, scene.name, batch(b"a", b"b"), acks=1)
    assert scene.fetch(2).high_watermark == 0
    assert scene.fetch(2, OTHER_FOLLOWER).high_watermark == 2
    assert size_of(fetch(scene.broker, scene.name)) > 0


def test_a_produce_with_acks_all_is_answered_when_the_followers_have_it(scene: Scene) -> None:
    request = produce_request([(scene.name, 0, batch())], acks=-1)
    pending = scene.broker.begin(request, ProduceResponse, 9)
    scene.fetch(1)
    scene.fetch(1, OTHER_FOLLOWER)
    assert pending.result().responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_a_produce_that_waits_when_the_set_gets_too_small_fails_after_the_append(scene: Scene) -> None:
    scene.partition.configure(replace(scene.partition.log.config, min_insync_replicas=2))
    request = produce_request([(scene.name, 0, batch())], acks=-1)
    pending = scene.broker.begin(request, ProduceResponse, 9)
    scene.lead((0,))
    answer = pending.result().responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert produce(scene.broker, scene.name).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert produce(scene.broker, scene.name, acks=1).error_code == ErrorCode.NONE
    assert scene.partition.high_watermark == 0, "below the minimum nothing is committed"


@pytest.mark.parametrize(
    ("behind", "error"), [(1, ErrorCode.FENCED_LEADER_EPOCH), (-1, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_fetch_of_another_leader_epoch_counts_for_nothing(scene: Scene, behind: int, error: ErrorCode) -> None:
    produce(scene.broker, scene.name, batch(b"a"), acks=1)
    scene.fetch(1, OTHER_FOLLOWER)
    assert scene.fetch(1, epoch=scene.epoch - behind).error_code == error
    assert scene.partition.high_watermark == 0


def test_a_follower_must_name_its_leader_epoch(scene: Scene) -> None:
    assert scene.fetch(0, epoch=-1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_broker_without_a_replica_is_refused(scene: Scene) -> None:
    produce(scene.broker, scene.name, acks=1)
    answer = scene.fetch(0, STRANGER)
    assert (answer.error_code, size_of(answer)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)


def test_a_client_without_cluster_action_cannot_be_a_replica(scene: Scene) -> None:
    produce(scene.broker, scene.name, acks=1)
    scene.broker.services.authorizer = AllowsOnly(Operation.READ)
    answer = scene.fetch(0)
    assert (answer.error_code, size_of(answer)) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)
    scene.broker.services.authorizer = AllowsOnly(Operation.CLUSTER_ACTION)
    assert size_of(scene.fetch(0)) > 0


def test_a_waiting_follower_is_woken_by_an_append(scene: Scene) -> None:
    pending = begin_fetch(scene.broker, scene.request(0, max_wait_ms=60_000))
    before_ms = scene.broker.elapsed_ms()
    produce(scene.broker, scene.name, acks=1)
    assert size_of(partitions_of(pending.result())[0]) > 0
    assert scene.broker.elapsed_ms() - before_ms < 60_000


def test_a_waiting_follower_is_answered_when_the_leader_epoch_rises(scene: Scene) -> None:
    pending = begin_fetch(scene.broker, scene.request(0, max_wait_ms=60_000))
    scene.lead((0, FOLLOWER))
    assert partitions_of(pending.result())[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_follower_that_leaves_the_in_sync_set_while_its_fetch_waits_joins_by_its_next_fetch(scene: Scene) -> None:
    """An append cannot be awaited: below the minimum of in-sync replicas there is none."""
    session_id = fetch_all(scene.broker, scene.request(0, session=(0, 0))).session_id

    def fetch_incrementally(session_epoch: int, max_wait_ms: int) -> FetchRequest:
        return fetch_request([], replica_id=FOLLOWER, session=(session_id, session_epoch), max_wait_ms=max_wait_ms)

    pending = scene.broker.begin(fetch_incrementally(1, 60_000), FetchResponse, BY_TOPIC_ID)
    scene.shrink((0, OTHER_FOLLOWER))
    followers = scene.partition.followers
    assert followers is not None
    progress = followers.in_sync.followers[FOLLOWER]
    assert partitions_of(pending.result()) == []
    assert progress.fetch_offset == NO_OFFSET, "the fetch was sent before"
    fetch_all(scene.broker, fetch_incrementally(2, 0), BY_TOPIC_ID)
    assert progress.fetch_offset == 0


def test_the_end_of_a_new_leader_is_unknown_until_it_is_committed(scene: Scene) -> None:
    produce(scene.broker, scene.name, batch(b"a", b"b"), acks=1)
    scene.lead((0, FOLLOWER))
    assert list_offset(scene.broker, scene.name, LATEST).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert list_offset(scene.broker, scene.name, LATEST, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    scene.fetch(2)
    assert list_offset(scene.broker, scene.name, LATEST).offset == 2


def test_a_follower_learns_the_log_end(scene: Scene) -> None:
    produce(scene.broker, scene.name, batch(b"a", b"b"), acks=1)
    asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST, current_leader_epoch=scene.epoch)
    request = ListOffsetsRequest(replica_id=FOLLOWER, topics=[ListOffsetsTopic(name=scene.name, partitions=[asked])])
    assert scene.broker.call(request, ListOffsetsResponse, 9).topics[0].partitions[0].offset == 2
    scene.broker.services.authorizer = AllowsOnly(Operation.DESCRIBE)
    assert scene.broker.call(request, ListOffsetsResponse, 9).topics[0].partitions[0].offset == 0


def test_deleting_records_waits_for_the_followers(scene: Scene) -> None:
    """Here none is registered, so that none is waited for."""
    produce(scene.broker, scene.name, batch(b"a", b"b"), acks=1)
    scene.fetch(2)
    scene.fetch(2, OTHER_FOLLOWER)
    assert delete_records(scene.broker, scene.name, 1).error_code == ErrorCode.NONE
    registered = FakeReplication(0, FOLLOWER)
    followers = scene.partition.followers
    assert followers is not None
    followers._context = registered
    assert delete_records(scene.broker, scene.name, 2).error_code == ErrorCode.REQUEST_TIMED_OUT
    followers.record_fetch(FOLLOWER, 2, 2, 1)
    assert delete_records(scene.broker, scene.name, 2).low_watermark == 2


def throttle_leader(scene: Scene) -> ReplicationThrottle:
    """One byte per second, which the first record exceeds."""
    throttle = ReplicationThrottle(lambda: 1, scene.broker.elapsed_ms)
    throttle.set_partitions({scene.name: None})
    scene.broker.services.partitions.leader_throttle = throttle
    return throttle


def test_a_throttled_follower_that_is_not_in_sync_gets_no_records(scene: Scene) -> None:
    scene.lead((0, FOLLOWER))
    throttle = throttle_leader(scene)
    produce(scene.broker, scene.name, batch(b"a" * 100), acks=1)
    assert size_of(scene.fetch(0, OTHER_FOLLOWER)) > 0, "nothing has passed before"
    assert throttle.is_exceeded
    assert size_of(scene.fetch(0, OTHER_FOLLOWER)) == 0
    assert size_of(scene.fetch(0, FOLLOWER)) > 0, "a replica in sync is never delayed"


def test_an_append_to_a_throttled_partition_does_not_end_the_wait_of_its_follower(scene: Scene) -> None:
    scene.lead((0, FOLLOWER))
    throttle_leader(scene).record(1_000_000)
    produce(scene.broker, scene.name, acks=1)
    pending = begin_fetch(scene.broker, scene.request(0, OTHER_FOLLOWER, max_wait_ms=500))
    before_ms = scene.broker.elapsed_ms()
    produce(scene.broker, scene.name, acks=1)
    assert size_of(partitions_of(pending.result())[0]) == 0
    assert scene.broker.elapsed_ms() - before_ms >= 500


def test_the_progress_of_a_throttled_follower_is_not_recorded_before_its_log_is_compared(scene: Scene) -> None:
    scene.lead((0, FOLLOWER))
    throttle_leader(scene).record(1_000_000)
    produce(scene.broker, scene.name, acks=1)
    scene.fetch(1, OTHER_FOLLOWER)
    followers = scene.partition.followers
    assert followers is not None
    assert followers.in_sync.followers[OTHER_FOLLOWER].fetch_offset < 1


@pytest.mark.parametrize("has_begun", [True, False])
@pytest.mark.filterwarnings("ignore:coroutine '_wait' was never awaited")
def test_a_lost_connection_ends_the_watch_of_a_fetch_without_a_session(scene: Scene, has_begun: bool) -> None:
    watches = scene.partition.replica_watches
    request = scene.request(0, max_wait_ms=500)

    async def lose() -> None:
        task = asyncio.ensure_future(scene.broker.handle(request, 15))
        if has_begun:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert watches._keys
        task.cancel()

    scene.broker.run(lose())
    scene.broker.simulation.loop.run_until_complete(asyncio.sleep(1))  # a poll's pause: simulated time
    assert not watches._keys
