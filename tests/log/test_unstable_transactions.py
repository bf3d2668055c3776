"""Which transactions bound the last stable offset."""

from odradek.log.unstable_transactions import NO_UNSTABLE_OFFSET, EndedTransaction, UnstableTransactions


def test_an_open_transaction_is_unstable_until_its_marker_is_committed() -> None:
    transactions = UnstableTransactions()
    assert transactions.first_unstable_offset == NO_UNSTABLE_OFFSET
    transactions.begin(1, 10)
    transactions.begin(2, 20)
    assert transactions.end(1, 30) == 10
    assert (transactions.first_unstable_offset, transactions.oldest_open_offset(0)) == (10, 20)
    transactions.commit_before(30)
    assert transactions.first_unstable_offset == 10, "the marker itself is at the high watermark"
    transactions.commit_before(31)
    assert transactions.first_unstable_offset == 20
    assert transactions.end(2, 40) == 20
    transactions.commit_before(41)
    assert (transactions.first_unstable_offset, transactions.ended) == (NO_UNSTABLE_OFFSET, [])


def test_a_marker_without_data_ends_nothing() -> None:
    transactions = UnstableTransactions()
    assert transactions.end(1, 5) is None
    assert (transactions.ended, transactions.first_unstable_offset) == ([], NO_UNSTABLE_OFFSET)


def test_loaded_transactions_are_in_the_order_of_their_begin() -> None:
    transactions = UnstableTransactions([(1, 30), (2, 10), (3, 20)])
    assert [*transactions.open.items()] == [(2, 10), (3, 20), (1, 30)]
    assert transactions.first_unstable_offset == 10


def test_what_ended_before_a_truncation_is_taken_over() -> None:
    earlier = UnstableTransactions([(1, 10), (2, 20)])
    earlier.end(1, 30)
    earlier.end(2, 40)
    rebuilt = UnstableTransactions([(2, 20)])
    rebuilt.take_ended(earlier, 40)
    assert rebuilt.ended == [EndedTransaction(10, 30)]
    assert rebuilt.first_unstable_offset == 10
