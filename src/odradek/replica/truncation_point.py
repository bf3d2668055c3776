"""Where a follower cuts its log when the leader says that the two have diverged (KIP-101, KIP-279). Pure."""

from odradek.log.leader_epochs import LeaderEpochs
from odradek.protocol.sentinels import NO_EPOCH


def find_truncation_point(
    leader_epochs: LeaderEpochs, log_end_offset: int, leader_epoch: int, leader_end_offset: int
) -> int:
    """`leader_epoch` is the largest epoch of the leader's log that is not larger than the follower's last one, and
    `leader_end_offset` its end there.

    A follower that has this epoch keeps what both have of it. One that has it not keeps its own epochs before it, and
    the next fetch, with an older epoch, finds out whether these agree."""
    if leader_epoch == NO_EPOCH:
        return min(leader_end_offset, log_end_offset)
    epoch, end_offset = leader_epochs.end_offset(leader_epoch, log_end_offset)
    if epoch == leader_epoch:
        return min(end_offset, leader_end_offset, log_end_offset)
    if epoch == NO_EPOCH:  # every epoch of the follower is older: its end is the end of the log
        return min(leader_end_offset, log_end_offset)
    return min(end_offset, log_end_offset)
