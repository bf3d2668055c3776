"""A commit is applied to every partition, also if one of them fails."""

import pytest

from odradek.log.log_config import LogConfig
from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import alter_configs, batch, create_topic, produce
from tests.replica.test_sparse_table import ELSEWHERE, HERE, change_partition

BOTH = (HERE, ELSEWHERE)


def test_a_partition_that_cannot_follow_its_metadata_does_not_stop_the_others(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(broker, name, 3)
    real = Partition.become_leader

    def fail_for_second(partition: Partition, image: PartitionImage) -> ErrorCode:
        assert partition.index != 1, "defect"
        return real(partition, image)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Partition, "become_leader", fail_for_second)
        request = CreatePartitionsTopic(name=name, count=4, assignments=None)
        answer = broker.call(CreatePartitionsRequest(topics=[request]), CreatePartitionsResponse)
    assert answer.results[0].error_code == ErrorCode.NONE
    assert produce(broker, name, partition=3).error_code == ErrorCode.NONE
    assert caplog.messages == ["leadership of a partition could not be applied"]
    caplog.clear()


def test_a_partition_that_cannot_be_configured_does_not_stop_the_others(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(broker, name, 2)
    real = Partition.configure

    def fail_for_first(partition: Partition, config: LogConfig) -> None:
        assert partition.index != 0, "defect"
        real(partition, config)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Partition, "configure", fail_for_first)
        alter_configs(broker, 2, name, segment_bytes="2000000")
    assert broker.partition(name, 1).log.config.segment_bytes == 2_000_000
    assert caplog.messages == ["the configuration of a partition could not be applied"]
    caplog.clear()


def test_a_partition_whose_leadership_is_applied_in_part_commits_nothing(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(broker, name)
    partition = broker.partition(name)
    change_partition(broker, name, 0, leader=ELSEWHERE, replicas=BOTH)
    defects = ["defect"]

    def fail() -> None:
        if defects:
            raise AssertionError(defects.pop())

    forget = partition.on_leadership(fail)
    change_partition(broker, name, 0, leader=HERE, replicas=BOTH)
    assert not partition.is_leader
    assert produce(broker, name).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.high_watermark == 0
    forget()
    change_partition(broker, name, 0, leader=HERE, replicas=BOTH)
    assert partition.is_leader
    assert partition.followers is not None
    assert caplog.messages == ["leadership of a partition could not be applied"]
    caplog.clear()


def test_a_leader_without_its_followers_does_not_commit(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    partition = broker.partition(name)
    change_partition(broker, name, 0, leader=HERE, replicas=BOTH)
    before = partition.high_watermark
    partition.followers = None
    partition._has_too_few_in_sync = False
    assert partition.append(memoryview(batch()), 1).error is ErrorCode.NONE
    assert partition.high_watermark == before
