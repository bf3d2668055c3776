"""Where a follower cuts its log: examples of KIP-101 and KIP-279."""

import pytest

from odradek.log.leader_epochs import EpochEntry, LeaderEpochs
from odradek.replica.truncation_point import find_truncation_point

EPOCHS = (EpochEntry(1, 0), EpochEntry(3, 10), EpochEntry(5, 20))
END = 30


@pytest.mark.parametrize(
    ("leader_epoch", "leader_end", "offset"),
    [
        (5, 25, 25),  # the leader has less of the last epoch
        (5, 40, 30),  # the leader has more of it
        (3, 15, 15),  # the leader knows no later epoch than 3
        (3, 25, 20),  # what it has of epoch 3 beyond offset 20, this log does not have
        (4, 25, 20),  # this log has nothing of epoch 4: epochs up to 3 are compared next
        (2, 12, 10),
        (-1, 7, 7),  # the leader's log has no epochs
        (0, 4, 0),  # everything here is of later epochs than the leader's
    ],
)
def test_what_both_logs_may_share_is_kept(leader_epoch: int, leader_end: int, offset: int) -> None:
    assert find_truncation_point(LeaderEpochs(EPOCHS), END, leader_epoch, leader_end) == offset


def test_a_log_without_epochs_is_cut_at_the_leaders_end() -> None:
    assert find_truncation_point(LeaderEpochs(), END, 5, 25) == 25
