"""Applying metadata to one partition. A defect that shows in one partition is logged, so that the rest of a commit is
applied: no commit is applied twice."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.log.log_config import LogConfig
    from odradek.metadata.entities import PartitionImage
    from odradek.replica.partition import Partition

log = get_logger(__name__)

LEADERSHIP_NOT_APPLIED = "leadership of a partition could not be applied"


def apply_leadership(partition: Partition, image: PartitionImage, node_id: int, *, may_lead: bool) -> bool:
    """Lead, follow or resign, as the image says for the broker with this id. Returns whether the broker began to lead
    in a new epoch."""
    led_epoch = partition.leader_epoch if partition.is_leader else None
    refusal: ErrorCode | None = None
    with _failures_logged(partition, LEADERSHIP_NOT_APPLIED):
        if image.leader == node_id and may_lead:
            refusal = partition.become_leader(image)
        elif image.leader in (NO_LEADER, node_id):
            refusal = partition.resign(image)
        else:
            refusal = partition.become_follower(image)
    if refusal is None:
        if partition.is_leader:
            _withdraw(partition)
        return False
    if refusal is ErrorCode.INVALID_UPDATE_VERSION and partition.followers is not None:
        return False  # the leader knows a later change of its in-sync set from the controller's answer
    if refusal is not ErrorCode.NONE:
        log.error(
            "metadata with an older epoch was not applied", topic=partition.topic, partition=partition.index,
            leader_epoch=image.leader_epoch, partition_epoch=image.partition_epoch, reason=refusal.name,
        )  # fmt: skip
    return partition.is_leader and partition.leader_epoch != led_epoch


def postpone_leadership(partition: Partition, image: PartitionImage) -> None:
    """The partition has no leader in the image's leader epoch until `apply_leadership` is called for it."""
    with _failures_logged(partition, LEADERSHIP_NOT_APPLIED):
        partition.resign(image)


def _withdraw(partition: Partition) -> None:
    """A leader whose metadata is applied in part may lack its followers: it must not commit records alone."""
    with _failures_logged(partition, "a listener of a partition failed"):
        partition.withdraw()


def apply_config(partition: Partition, config: LogConfig) -> None:
    with _failures_logged(partition, "the configuration of a partition could not be applied"):
        partition.configure(config)


@contextlib.contextmanager
def _failures_logged(partition: Partition, event: str) -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        log.error(event, topic=partition.topic, partition=partition.index, exc_info=problem)
