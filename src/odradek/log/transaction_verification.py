"""The guard against hanging transactions (KIP-890). A batch that would begin a transaction in a partition is appended
only if the transaction coordinator has confirmed the transaction since a marker or a batch of its producer was last
appended there. Pure; the rules are those of Kafka's VerificationStateEntry, except that a verification has the
transaction version of its newest epoch. In Kafka it keeps that of its first batch: if that was version 2 and a newer
client uses version 1, a marker does not end it, and a batch that arrives late is appended after its transaction was
aborted."""

from itertools import islice

from odradek.protocol.errors import ErrorCode

# Kafka bounds the number of pending verifications only by expiry; a client that uses a new producer id for each batch
# leaves one with each that the coordinator refuses. A verification takes milliseconds: nobody waits for the oldest.
VERIFICATIONS_LIMIT = 10_000


class VerificationGuard:
    """Identifies one verification, by identity: a guard that was replaced does not become valid again."""

    __slots__ = ()


class PendingVerification:
    """The verification of one producer's next transaction in one partition."""

    __slots__ = ("begun_ms", "epoch", "guard", "lowest_sequence", "supports_epoch_bump")

    def __init__(self, begun_ms: int, epoch: int, sequence: int, supports_epoch_bump: bool) -> None:
        self.begun_ms = begun_ms
        self.guard = VerificationGuard()
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.supports_epoch_bump = supports_epoch_bump

    def add(self, epoch: int, sequence: int, supports_epoch_bump: bool) -> None:
        """Another batch waits for this verification."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence, self.supports_epoch_bump = epoch, sequence, supports_epoch_bump
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
            self.supports_epoch_bump = self.supports_epoch_bump and supports_epoch_bump

    def check_sequence(self, sequence: int, *, has_batches: bool) -> ErrorCode | None:
        """A batch must not overtake an earlier one whose verification failed and is repeated: the earlier one would be
        refused for ever. With transactions of version 2, a producer without known batches begins at 0."""
        is_gap = self.supports_epoch_bump and sequence != 0 and not has_batches
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if is_gap or sequence > self.lowest_sequence else None


class Verifications:
    """The pending verifications of one partition, by producer id."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        self.pending: dict[int, PendingVerification] = {}

    def begin(
        self, producer_id: int, epoch: int, sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard:
        """The guard that the append needs. All batches that wait for the same verification share it."""
        pending = self.pending.get(producer_id)
        if pending is None:
            if len(self.pending) >= VERIFICATIONS_LIMIT:
                self._remove_oldest()
            pending = self.pending[producer_id] = PendingVerification(now_ms, epoch, sequence, supports_epoch_bump)
        else:
            pending.add(epoch, sequence, supports_epoch_bump)
        return pending.guard

    def _remove_oldest(self) -> None:
        """Removes an eighth of the limit. A batch that waits for one of them is refused with INVALID_TXN_STATE."""
        for producer_id in list(islice(self.pending, VERIFICATIONS_LIMIT // 8)):
            del self.pending[producer_id]

    def is_valid(self, producer_id: int, guard: VerificationGuard | None) -> bool:
        pending = self.pending.get(producer_id)
        return pending is not None and pending.guard is guard

    def end(self, producer_id: int, producer_epoch: int, *, is_marker: bool) -> None:
        """A transactional batch or a marker was appended. A marker of version 2 has the epoch of the producer's next
        transaction, whose verification it leaves valid."""
        pending = self.pending.get(producer_id)
        if pending is None or (is_marker and pending.supports_epoch_bump and producer_epoch == pending.epoch):
            return
        del self.pending[producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Removes verifications that were never followed by an append."""
        for producer_id, pending in tuple(self.pending.items()):
            if now_ms - pending.begun_ms >= expiration_ms:
                del self.pending[producer_id]
