"""A partition: what its role, its epoch and its in-sync set allow."""

import pytest

from odradek.log.checkpoints import OffsetCheckpoint
from odradek.log.partition_log import PartitionLog
from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.replica.fetch_result import FetchIsolation, FetchResult
from odradek.replica.leadership import Leadership, LogState
from odradek.replica.partition import Partition
from odradek.replica.partition_fetch import fetch_from, needs_disk
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import alter_configs, batch, create_topic


@pytest.fixture
def partition(broker: SimulatedBroker, name: str) -> Partition:
    create_topic(broker, name)
    return broker.partition(name)


def append(partition: Partition, *values: bytes, acks: int = -1) -> ErrorCode:
    return partition.append(memoryview(batch(*values)), acks).error


def fetch(
    partition: Partition,
    offset: int = 0,
    isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
    **options: int,
) -> FetchResult:
    chosen = {"max_bytes": 1 << 20, "current_leader_epoch": -1, "last_fetched_epoch": -1} | options
    return fetch_from(
        partition,
        offset,
        chosen["max_bytes"],
        current_leader_epoch=chosen["current_leader_epoch"],
        last_fetched_epoch=chosen["last_fetched_epoch"],
        whole_first_batch=True,
        isolation=isolation,
    )


def image(partition: Partition, *, replicas: tuple[int, ...], in_sync: tuple[int, ...], epoch: int) -> PartitionImage:
    return PartitionImage(partition.index, replicas, in_sync, 0, epoch, epoch)


def test_what_is_appended_is_committed_at_once(partition: Partition) -> None:
    assert append(partition, b"a", b"b") is ErrorCode.NONE
    assert partition.high_watermark == partition.log.log_end_offset == 2
    assert fetch(partition).high_watermark == 2


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_too_few_in_sync_replicas_refuse_acks_all_only(
    broker: SimulatedBroker, name: str, partition: Partition, acks: int
) -> None:
    alter_configs(broker, 2, name, min_insync_replicas="2")
    partition.become_leader(image(partition, replicas=(0, 1), in_sync=(0,), epoch=1))
    assert append(partition, acks=acks) is (ErrorCode.NOT_ENOUGH_REPLICAS if acks == -1 else ErrorCode.NONE)
    partition.become_leader(image(partition, replicas=(0, 1), in_sync=(0, 1), epoch=2))
    assert append(partition, acks=acks) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("in_sync", "minimum", "replicas", "is_enough"),
    [
        (1, 1, 1, True),
        (1, 2, 1, True),  # a partition has no more replicas in sync than replicas
        (1, 2, 2, False),
        (2, 2, 2, True),
        (2, 2, 3, True),
        (1, 2, 3, False),
        (2, 3, 2, True),
    ],
)
def test_no_more_in_sync_replicas_are_asked_for_than_there_are(
    broker: SimulatedBroker, name: str, partition: Partition, in_sync: int, minimum: int, replicas: int, is_enough: bool
) -> None:
    alter_configs(broker, 2, name, min_insync_replicas=str(minimum))
    partition.become_leader(image(partition, replicas=tuple(range(replicas)), in_sync=tuple(range(in_sync)), epoch=1))
    assert append(partition, acks=-1) is (ErrorCode.NONE if is_enough else ErrorCode.NOT_ENOUGH_REPLICAS)


def test_a_duplicate_moves_nothing_and_wakes_no_fetch(partition: Partition) -> None:
    first = partition.append(memoryview(batch(b"a", producer=(5, 0, 0))), -1)
    again = partition.append(memoryview(batch(b"a", producer=(5, 0, 0))), -1)
    assert (again.base_offset, again.is_duplicate) == (first.base_offset, True)
    assert partition.high_watermark == 1


def test_a_new_epoch_begins_where_the_log_ends(partition: Partition) -> None:
    append(partition, b"a", b"b")
    partition.become_leader(image(partition, replicas=(0,), in_sync=(0,), epoch=3))
    append(partition, b"c")
    assert partition.log.epoch_end_offset(0) == (0, 2)
    assert partition.log.epoch_end_offset(3) == (3, 3)
    assert fetch(partition, current_leader_epoch=0).error is ErrorCode.FENCED_LEADER_EPOCH
    assert fetch(partition, current_leader_epoch=3).error is ErrorCode.NONE
    assert fetch(partition, current_leader_epoch=4).error is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_retired_partition_takes_and_gives_nothing(partition: Partition) -> None:
    append(partition)
    partition.retire()
    assert partition.log_state is LogState.RETIRED
    assert append(partition) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetch(partition).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.delete_records_before(1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.log_end_offset == 1


# --- leadership


@pytest.mark.parametrize("become", ["become_leader", "become_follower", "resign"])
@pytest.mark.parametrize(
    ("epochs", "refusal"),
    [((4, 9), ErrorCode.FENCED_LEADER_EPOCH), ((5, 4), ErrorCode.INVALID_UPDATE_VERSION)],
)
def test_older_epochs_are_refused(
    partition: Partition, become: str, epochs: tuple[int, int], refusal: ErrorCode
) -> None:
    leader_epoch, partition_epoch = epochs
    assert partition.become_leader(PartitionImage(0, (0, 1), (0, 1), 0, 5, 5)) is ErrorCode.NONE
    older = PartitionImage(0, (0,), (0,), 0, leader_epoch, partition_epoch)
    assert getattr(partition, become)(older) is refusal
    assert (partition.leadership, partition.leader_epoch, partition.partition_epoch) == (Leadership.LEADER, 5, 5)
    assert partition.image is not None
    assert len(partition.image.in_sync_replicas) == 2


def test_one_leader_epoch_has_one_leader(partition: Partition) -> None:
    assert partition.become_follower(PartitionImage(0, (0, 1), (0, 1), 1, 5, 5)) is ErrorCode.NONE
    with pytest.raises(AssertionError, match="two leaders"):
        partition.become_leader(PartitionImage(0, (0, 1), (0, 1), 0, 5, 6))


def test_leadership_listeners_are_called_when_this_broker_starts_or_stops_leading(partition: Partition) -> None:
    calls: list[bool] = []
    forget = partition.on_leadership(lambda: calls.append(partition.is_leader))
    partition.become_follower(PartitionImage(0, (0, 1), (0, 1), 1, 5, 5))
    partition.become_leader(PartitionImage(0, (0, 1), (0, 1), 0, 6, 6))
    partition.become_leader(PartitionImage(0, (0, 1), (0,), 0, 6, 7))
    partition.fail()
    assert calls == [False, True, False]
    forget()
    partition.retire()
    assert len(calls) == 3


# --- the high watermark


def test_with_other_in_sync_replicas_the_log_end_is_not_committed(partition: Partition) -> None:
    partition.become_leader(image(partition, replicas=(0, 1), in_sync=(0, 1), epoch=1))
    append(partition, b"a", b"b")
    assert (partition.high_watermark, partition.log.log_end_offset) == (0, 2)
    assert fetch(partition).records is None
    assert fetch(partition, isolation=FetchIsolation.TRANSACTION_COMMITTED).records is None
    to_the_end = fetch(partition, isolation=FetchIsolation.LOG_END)
    assert to_the_end.records is not None
    assert to_the_end.high_watermark == 0
    partition.become_leader(PartitionImage(0, (0, 1), (0,), 0, 1, 2))
    assert partition.high_watermark == 2, "the only in-sync replica commits alone"


def test_listeners_get_each_new_high_watermark(partition: Partition) -> None:
    seen: list[int] = []
    forget = partition.on_high_watermark(seen.append)
    append(partition, b"a", b"b")
    append(partition, b"c")
    partition.advance_high_watermark(2)
    assert seen == [2, 3]
    forget()
    append(partition)
    assert seen == [2, 3]


def test_the_high_watermark_never_passes_the_log_end(partition: Partition) -> None:
    with pytest.raises(AssertionError, match="passed the log end"):
        partition.advance_high_watermark(1)


def test_the_high_watermark_starts_from_the_checkpoint(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    for _ in range(3):
        append(broker.partition(name))
    broker.run(broker.node.stop())
    disk = broker.simulation.disk
    checkpoint = OffsetCheckpoint(disk, "/data/replication-offset-checkpoint")
    assert checkpoint.read()[name, 0] == 3
    checkpoint.write({**checkpoint.read(), (name, 0): 2})
    seen: list[int] = []
    become_leader = Partition.become_leader

    def watch(partition: Partition, image: PartitionImage) -> ErrorCode:
        seen.append(partition.high_watermark)
        return become_leader(partition, image)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Partition, "become_leader", watch)
        broker.run(broker._start())
    assert seen == [2]
    assert broker.partition(name).high_watermark == 3, "the only in-sync replica commits alone"


@pytest.mark.parametrize(("checkpointed", "start", "expected"), [(0, 2, 2), (9, 0, 3), (2, 0, 2)])
def test_a_checkpointed_high_watermark_outside_the_log_is_moved_into_it(
    broker: SimulatedBroker, partition: Partition, checkpointed: int, start: int, expected: int
) -> None:
    append(partition, b"a", b"b", b"c")
    partition.delete_records_before(start)
    reopened = Partition(
        partition.topic,
        partition.topic_id,
        0,
        partition.log,
        partition.directory,
        partition.workers,
        lambda directory, problem: None,
        broker.services.partitions.truncations,
        high_watermark=checkpointed,
    )
    assert reopened.high_watermark == expected


@pytest.mark.parametrize("end", ["fail", "retire"])
def test_a_fetch_that_is_refused_needs_no_disk(partition: Partition, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers of a failed log directory may hang."""
    append(partition, b"a", b"b")
    monkeypatch.setattr(PartitionLog, "needs_disk", lambda log, fetch_offset: True)
    assert needs_disk(partition, 0)
    getattr(partition, end)()
    assert not needs_disk(partition, 0)
