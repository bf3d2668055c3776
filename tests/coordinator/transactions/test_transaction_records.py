"""The records of transactions: the bytes are those of the schema, and what is written is read back."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.transactions.transaction import Transaction, TransactionState, TransactionVersion
from odradek.coordinator.transactions.transaction_records import (
    VALUE_VERSION,
    PartitionsSchema,
    TransactionLogValue,
    by_topic,
    read_transaction,
    transaction_value,
)

IDS = st.integers(-1, 2**63 - 1)
TIMES = st.integers(-1, 2**62)
TRANSACTIONS = st.builds(
    Transaction,
    producer_id=IDS,
    previous_producer_id=IDS,
    next_producer_id=IDS,
    producer_epoch=st.integers(-1, 2**15 - 1),
    timeout_ms=st.integers(0, 2**31 - 1),
    state=st.sampled_from(TransactionState),
    partitions=st.frozensets(
        st.tuples(st.sampled_from(["a", "b-ü", "c" * 200]), st.integers(0, 2**31 - 1)), max_size=40
    ),
    last_update_ms=TIMES,
    start_ms=TIMES,
    client_version=st.sampled_from(TransactionVersion),
)


@given(TRANSACTIONS)
def test_a_value_has_the_bytes_of_the_schema(transaction: Transaction) -> None:
    is_empty = transaction.state is TransactionState.EMPTY
    topics = [
        PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic(transaction.partitions).items()
    ]
    expected = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if is_empty else topics,
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    value = transaction_value(transaction)
    parts = expected.encode(VALUE_VERSION)
    assert value == VALUE_VERSION.to_bytes(2, "big") + b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]  # no slices
    assert read_transaction(value) == transaction._replace(
        partitions=frozenset() if is_empty else transaction.partitions, last_epoch=-1
    )
