"""The rules of transactions: cases that a wire test cannot reach, and what holds after any sequence of requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.transactions import transaction_rules as rules
from odradek.coordinator.transactions.transaction import (
    LARGEST_EPOCH,
    LAST_PRODUCER_EPOCH,
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionVersion,
)
from odradek.coordinator.transactions.transaction_records import transaction_record
from odradek.protocol.errors import ErrorCode

V0, V2 = TransactionVersion.V0, TransactionVersion.V2
PARTITION = frozenset({("t", 0)})


def ongoing(epoch: int, version: TransactionVersion = V2) -> Transaction:
    return Transaction(
        producer_id=7,
        producer_epoch=epoch,
        timeout_ms=1000,
        last_update_ms=10,
        start_ms=10,
        state=TransactionState.ONGOING,
        partitions=PARTITION,
        client_version=version,
    )


def test_a_producer_id_that_is_not_needed_is_not_used() -> None:
    """It was allocated for another producer, which has been replaced meanwhile."""
    outcome = rules.end_transaction(ongoing(3), ProducerIdentity(7, 3), V2, 20, commits=True, new_producer_id=99)
    assert outcome.transaction is not None
    assert rules.answer_identity(outcome.transaction) == (7, 4)


def test_the_version_of_the_request_decides_what_a_retry_is() -> None:
    """As in Apache Kafka, whatever version the requests before had."""
    first, raised = ProducerIdentity(7, 3), ProducerIdentity(7, 4)

    def error(current: Transaction, producer: ProducerIdentity, version: TransactionVersion) -> ErrorCode:
        return rules.end_transaction(current, producer, version, 30, commits=True).error

    with_same_epoch = rules.end_transaction(ongoing(3), first, V0, 20, commits=True).transaction
    with_raised_epoch = rules.end_transaction(ongoing(3, V0), first, V2, 20, commits=True).transaction
    assert with_same_epoch is not None
    assert with_raised_epoch is not None
    assert error(with_same_epoch, first, V0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert error(with_same_epoch, first, V2) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert error(with_raised_epoch, first, V2) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert error(with_raised_epoch, raised, V0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert error(rules.complete(with_same_epoch, 25), first, V0) is ErrorCode.NONE
    assert error(rules.complete(with_same_epoch, 25), first, V2) is ErrorCode.INVALID_TXN_STATE
    assert error(rules.complete(with_raised_epoch, 25), first, V0) is ErrorCode.PRODUCER_FENCED
    assert error(rules.complete(with_raised_epoch, 25), first, V2) is ErrorCode.NONE


def test_a_producer_fenced_by_a_client_of_version_1_gets_no_identity() -> None:
    """That client ends its transactions at the epoch that fenced the other one: this is not a retry of an end that
    raised the epoch. The seed 2661 of the simulated transactions found it."""
    prepared = rules.end_transaction(ongoing(5, V0), ProducerIdentity(7, 5), V0, 20, commits=False).transaction
    assert prepared is not None
    fenced = rules.end_transaction(rules.complete(prepared, 25), ProducerIdentity(7, 4), V2, 30, commits=False)
    assert fenced == rules.Outcome(ErrorCode.PRODUCER_FENCED)


def test_the_last_epoch_ends_with_a_new_producer_id() -> None:
    current = ongoing(LAST_PRODUCER_EPOCH)
    producer = ProducerIdentity(7, LAST_PRODUCER_EPOCH)
    assert rules.end_transaction(current, producer, V2, 20, commits=True).needs_producer_id
    prepared = rules.end_transaction(current, producer, V2, 20, commits=True, new_producer_id=8).transaction
    assert prepared is not None
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (7, LARGEST_EPOCH, 8)
    assert rules.answer_identity(prepared) == ProducerIdentity(8, 0)
    retried = rules.end_transaction(prepared, producer, V2, 21, commits=True)
    assert retried.error is ErrorCode.CONCURRENT_TRANSACTIONS
    completed = rules.complete(prepared, 30)
    assert (completed.producer_id, completed.producer_epoch, completed.previous_producer_id) == (8, 0, 7)
    assert rules.end_transaction(completed, producer, V2, 31, commits=True) == rules.Outcome()
    assert rules.end_transaction(completed, producer, V2, 31, commits=False).error is ErrorCode.INVALID_TXN_STATE
    assert rules.init_producer(completed, 1000, producer, 32).transaction is not None  # a retry by the old id


def test_a_client_that_has_its_new_producer_id_waits_for_the_markers_of_the_old_one() -> None:
    """EndTxn is answered before the markers are written, and clients retry on CONCURRENT_TRANSACTIONS."""
    producer, successor = ProducerIdentity(7, LAST_PRODUCER_EPOCH), ProducerIdentity(8, 0)
    prepared = rules.end_transaction(
        ongoing(LAST_PRODUCER_EPOCH), producer, V2, 20, commits=True, new_producer_id=8
    ).transaction
    assert prepared is not None
    assert rules.answer_identity(prepared) == successor

    def errors(current: Transaction, producer: ProducerIdentity) -> list[ErrorCode]:
        return [
            rules.add_partitions(current, producer, PARTITION, V2, 30).error,
            rules.end_transaction(current, producer, V2, 30, commits=False).error,
            rules.init_producer(current, 1000, producer, 30).error,
        ]

    assert errors(prepared, successor) == [ErrorCode.CONCURRENT_TRANSACTIONS] * 3
    completed = rules.complete(prepared, 40)
    assert rules.add_partitions(completed, successor, PARTITION, V2, 50).error is ErrorCode.NONE
    assert rules.init_producer(completed, 1000, successor, 50).error is ErrorCode.NONE


def test_a_start_with_the_last_epoch_gets_a_new_producer_id() -> None:
    current = ongoing(LAST_PRODUCER_EPOCH)._replace(state=TransactionState.COMPLETE_COMMIT)
    assert rules.init_producer(current, 1000, None, 20).needs_producer_id
    begun = rules.init_producer(current, 1000, None, 20, new_producer_id=8).transaction
    assert begun is not None
    assert (begun.producer_id, begun.producer_epoch, begun.previous_producer_id) == (8, 0, 7)


def test_a_coordinator_can_always_abort() -> None:
    aborted = rules.abort_by_coordinator(ongoing(LAST_PRODUCER_EPOCH, V0), 20)
    assert (aborted.state, aborted.producer_epoch) == (TransactionState.PREPARE_ABORT, LARGEST_EPOCH)
    completed = rules.complete(aborted, 30)
    assert rules.init_producer(completed, 1000, None, 40).needs_producer_id


def aborted_by_coordinator() -> Transaction:
    return rules.abort_by_coordinator(ongoing(LAST_PRODUCER_EPOCH), 20)


@pytest.mark.parametrize("commits", [False, True])
def test_the_end_of_a_fenced_producer_does_not_get_the_largest_epoch(commits: bool) -> None:
    """It is the coordinator's: a transaction in it could not be ended with a higher one."""
    current = rules.complete(aborted_by_coordinator(), 30)
    ended = rules.end_transaction(current, ProducerIdentity(7, LAST_PRODUCER_EPOCH), V2, 40, commits=commits)
    assert ended == rules.Outcome(ErrorCode.PRODUCER_FENCED)


def test_a_producer_that_continues_does_not_get_the_largest_epoch() -> None:
    current, expected = rules.complete(aborted_by_coordinator(), 30), ProducerIdentity(7, LAST_PRODUCER_EPOCH)
    assert rules.init_producer(current, 1000, expected, 40).needs_producer_id
    begun = rules.init_producer(current, 1000, expected, 40, new_producer_id=8).transaction
    assert begun is not None
    assert rules.answer_identity(begun) == (8, 0)
    retried = rules.init_producer(begun, 1000, expected, 50).transaction
    assert retried is not None
    assert rules.answer_identity(retried) == (8, 0)
    assert rules.init_producer(current, 1000, ProducerIdentity(7, 3), 40).error is ErrorCode.PRODUCER_FENCED


def test_a_transaction_in_the_largest_epoch_can_be_ended() -> None:
    """Logs of earlier versions may hold one. No marker has a higher epoch, so its markers have that of the
    transaction, as before version 2."""
    current, producer = ongoing(LARGEST_EPOCH), ProducerIdentity(7, LARGEST_EPOCH)
    by_client = rules.end_transaction(current, producer, V2, 20, commits=True, new_producer_id=8).transaction
    by_producer = rules.init_producer(current, 1000, None, 20).transaction
    assert by_client is not None
    assert by_producer is not None
    for prepared in (by_client, by_producer, rules.abort_by_coordinator(current, 20)):
        assert transaction_record("id", prepared).value
        assert (prepared.producer_epoch, prepared.client_version.raises_epoch) == (LARGEST_EPOCH, False)
    assert rules.answer_identity(by_client) == rules.answer_identity(rules.complete(by_client, 30)) == (8, 0)


def test_the_id_of_a_transaction_does_not_expire() -> None:
    idle = ongoing(1)._replace(state=TransactionState.COMPLETE_ABORT)
    assert rules.is_expired(idle, 10 + 100, 100)
    assert not rules.is_expired(idle, 10 + 99, 100)
    for state in (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
        assert not rules.is_expired(idle._replace(state=state), 10**9, 100)


@pytest.mark.parametrize("version", [V0, V2])
def test_partitions_accumulate(version: TransactionVersion) -> None:
    first = rules.add_partitions(ongoing(1), ProducerIdentity(7, 1), frozenset({("t", 1)}), version, 50)
    assert first.transaction is not None
    assert first.transaction.partitions == {("t", 0), ("t", 1)}
    assert first.transaction.start_ms == 10
    again = rules.add_partitions(first.transaction, ProducerIdentity(7, 1), PARTITION, version, 60)
    assert again == rules.Outcome()


class Client:
    """A client as it should be: it uses the newest identity that it was given, and one version."""

    def __init__(self, version: TransactionVersion) -> None:
        self.version = version
        self.identity = ProducerIdentity(-1, -1)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["init", "init again", "add", "commit", "abort", "retry", "markers", "timeout", "lose answer"]),
        st.integers(0, 2),
    ),
    max_size=40,
)


@given(steps=STEPS, version=st.sampled_from([V0, V2]), first_epoch=st.sampled_from([-1, LAST_PRODUCER_EPOCH - 2]))
def test_no_transaction_mixes_producers_and_epochs_only_rise(  # noqa: C901, PLR0912 - one branch for each step
    steps: list[tuple[str, int]], version: TransactionVersion, first_epoch: int
) -> None:
    current: Transaction | None = None
    client = Client(version)
    if first_epoch >= 0:
        current = ongoing(first_epoch, version)._replace(state=TransactionState.COMPLETE_COMMIT, partitions=frozenset())
        client.identity = rules.answer_identity(current)
    next_id = 100
    now_ms = 0
    owners: dict[ProducerIdentity, int] = {}  # which start or end a producer identity was given by
    for number, (step, partition) in enumerate(steps):
        now_ms += 10
        before = current
        outcome = rules.Outcome(ErrorCode.NONE)
        if step in ("init", "init again"):
            expected = client.identity if step == "init again" and client.identity.producer_id >= 0 else None
            outcome = rules.init_producer(current, 1000, expected, now_ms)
            if outcome.needs_producer_id:
                outcome = rules.init_producer(current, 1000, expected, now_ms, next_id)
                next_id += 1
            if outcome.error is ErrorCode.NONE:
                assert outcome.transaction is not None
                given_identity = ProducerIdentity(outcome.transaction.producer_id, outcome.transaction.producer_epoch)
                is_retry = before is not None and given_identity == (before.producer_id, before.producer_epoch)
                assert is_retry or given_identity not in owners
                owners.setdefault(given_identity, number)
                client.identity = given_identity
        elif step == "add":
            outcome = rules.add_partitions(
                current, client.identity, frozenset({("t", partition)}), client.version, now_ms
            )
        elif step in ("commit", "abort", "lose answer", "retry"):
            outcome = rules.end_transaction(
                current,
                client.identity,
                client.version,
                now_ms,
                commits=step in ("commit", "retry"),
                new_producer_id=next_id,
            )
            next_id += 1
            state = outcome.transaction or current
            if outcome.error is ErrorCode.NONE and state is not None and step != "lose answer" and version is V2:
                client.identity = rules.answer_identity(state)
        elif step == "markers" and current is not None and current.state.is_ending:
            outcome = rules.Outcome(transaction=rules.complete(current, now_ms))
        elif step == "timeout" and current is not None and current.state is TransactionState.ONGOING:
            outcome = rules.Outcome(transaction=rules.abort_by_coordinator(current, now_ms))
        assert client.identity.epoch <= LAST_PRODUCER_EPOCH
        if outcome.transaction is not None:
            current = outcome.transaction
            assert transaction_record("id", current).value
        if before is not None and current is not None and current is not before:
            same_id = before.producer_id == current.producer_id
            assert not same_id or current.producer_epoch >= before.producer_epoch
            if before.state is TransactionState.ONGOING:
                assert current.state in (
                    TransactionState.ONGOING,
                    TransactionState.PREPARE_COMMIT,
                    TransactionState.PREPARE_ABORT,
                )
                assert before.partitions <= current.partitions
            if before.state.is_ending:
                assert step == "markers"
