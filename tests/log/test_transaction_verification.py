"""Verifications (KIP-890): a guard lasts until the next batch or marker of its producer."""

from odradek.log.transaction_verification import VERIFICATIONS_LIMIT, VerificationGuard, Verifications
from odradek.protocol.errors import ErrorCode

PRODUCER = 7


def begin(
    verifications: Verifications,
    *,
    epoch: int = 0,
    sequence: int = 0,
    supports_epoch_bump: bool = False,
    now_ms: int = 0,
) -> VerificationGuard:
    return verifications.begin(PRODUCER, epoch, sequence, supports_epoch_bump=supports_epoch_bump, now_ms=now_ms)


def test_batches_that_wait_for_the_same_verification_share_its_guard() -> None:
    verifications = Verifications()
    guard = begin(verifications, sequence=3)
    assert begin(verifications, sequence=5) is guard
    assert verifications.is_valid(PRODUCER, guard)
    assert not verifications.is_valid(PRODUCER, None)
    assert not verifications.is_valid(8, guard)


def test_a_guard_does_not_outlive_a_batch_or_a_marker() -> None:
    """Else a confirmation of one transaction could let a batch begin the next (the ABA problem)."""
    for is_marker in (False, True):
        verifications = Verifications()
        guard = begin(verifications)
        verifications.end(PRODUCER, 0, is_marker=is_marker)
        assert not verifications.is_valid(PRODUCER, guard)
        assert begin(verifications) is not guard
        assert not verifications.is_valid(PRODUCER, guard)


def test_a_marker_of_version_2_leaves_the_verification_of_the_next_transaction() -> None:
    verifications = Verifications()
    guard = begin(verifications, epoch=4, supports_epoch_bump=True)
    verifications.end(PRODUCER, 4, is_marker=True)
    assert verifications.is_valid(PRODUCER, guard), "the marker has the epoch of the next transaction"
    verifications.end(PRODUCER, 5, is_marker=True)
    assert not verifications.is_valid(PRODUCER, guard)


def test_no_batch_overtakes_one_whose_verification_is_repeated() -> None:
    verifications = Verifications()
    begin(verifications, sequence=4)
    begin(verifications, sequence=2)
    pending = verifications.pending[PRODUCER]
    assert pending.check_sequence(2, has_batches=True) is None
    assert pending.check_sequence(4, has_batches=True) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    begin(verifications, epoch=1, sequence=9)
    assert pending.check_sequence(9, has_batches=True) is None, "sequences of an older epoch do not count"


def test_a_verification_has_the_version_of_its_newest_epoch() -> None:
    """The refused batch of a client of version 2 must not keep the guard of a client of version 1 valid after its
    marker: the seed 1236 of the simulated transactions read an aborted record so."""
    verifications = Verifications()
    begin(verifications, epoch=0, supports_epoch_bump=True)
    guard = begin(verifications, epoch=2)
    verifications.end(PRODUCER, 2, is_marker=True)
    assert not verifications.is_valid(PRODUCER, guard)


def test_a_marker_ends_a_verification_of_batches_of_both_versions() -> None:
    verifications = Verifications()
    guard = begin(verifications, epoch=2, supports_epoch_bump=True)
    assert begin(verifications, epoch=2) is guard
    verifications.end(PRODUCER, 2, is_marker=True)
    assert not verifications.is_valid(PRODUCER, guard)


def test_a_producer_of_version_2_begins_at_zero() -> None:
    verifications = Verifications()
    begin(verifications, sequence=5, supports_epoch_bump=True)
    pending = verifications.pending[PRODUCER]
    assert pending.check_sequence(5, has_batches=False) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert pending.check_sequence(5, has_batches=True) is None
    assert pending.check_sequence(0, has_batches=False) is None


def test_verifications_without_an_append_expire() -> None:
    verifications = Verifications()
    guard = begin(verifications, now_ms=1000)
    verifications.remove_expired(1999, 1000)
    assert verifications.is_valid(PRODUCER, guard)
    verifications.remove_expired(2000, 1000)
    assert not verifications.is_valid(PRODUCER, guard)


def test_producers_that_never_write_do_not_fill_the_memory() -> None:
    verifications = Verifications()
    for producer_id in range(3 * VERIFICATIONS_LIMIT):
        guard = verifications.begin(producer_id, 0, 0, supports_epoch_bump=True, now_ms=0)
        assert verifications.is_valid(producer_id, guard)
    assert len(verifications.pending) <= VERIFICATIONS_LIMIT
    assert producer_id - VERIFICATIONS_LIMIT // 2 in verifications.pending, "the oldest are removed"
