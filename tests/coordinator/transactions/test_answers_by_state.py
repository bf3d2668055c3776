"""The answer to each request of each producer in each state of a transaction.

Those of Apache Kafka 4.3.1: the rows of PrepareCommit and PrepareAbort are asked of it in
tests/clients/test_ending_transactions.py, the others in tests/clients/test_transaction_sequences.py.
"""

import pytest

from odradek.coordinator.transactions import transaction_rules as rules
from odradek.coordinator.transactions.transaction import (
    STATES_BY_LABEL,
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionVersion,
)
from odradek.protocol.errors import ErrorCode

V0, V2 = TransactionVersion.V0, TransactionVersion.V2
ID, EPOCH = 7, 5
PARTITION = frozenset({("t", 0)})
ERRORS = {
    "-": ErrorCode.NONE,
    "concurrent": ErrorCode.CONCURRENT_TRANSACTIONS,
    "fenced": ErrorCode.PRODUCER_FENCED,
    "unknown": ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    "state": ErrorCode.INVALID_TXN_STATE,
    "abortable": ErrorCode.TRANSACTION_ABORTABLE,
}
PRODUCERS = {
    "older": ProducerIdentity(ID, EPOCH - 1),
    "current": ProducerIdentity(ID, EPOCH),
    "newer": ProducerIdentity(ID, EPOCH + 1),
    "stranger": ProducerIdentity(99, EPOCH),
    "nobody": None,
}

TABLE = """
request        state           older       current     newer       stranger    nobody
init           Empty           -           -           fenced      fenced      -
init           Ongoing         concurrent  concurrent  concurrent  fenced      concurrent
init           PrepareCommit   concurrent  concurrent  concurrent  concurrent  concurrent
init           PrepareAbort    concurrent  concurrent  concurrent  concurrent  concurrent
init           CompleteCommit  -           -           fenced      fenced      -
init           CompleteAbort   -           -           fenced      fenced      -
add            Empty           fenced      -           fenced      unknown
add            Ongoing         fenced      -           fenced      unknown
add            PrepareCommit   concurrent  concurrent  concurrent  concurrent
add            PrepareAbort    concurrent  concurrent  concurrent  concurrent
add            CompleteCommit  fenced      -           fenced      unknown
add            CompleteAbort   fenced      -           fenced      unknown
verify         Empty           fenced      abortable   fenced      unknown
verify         Ongoing         fenced      -           fenced      unknown
verify         PrepareCommit   fenced      concurrent  fenced      unknown
verify         PrepareAbort    fenced      concurrent  fenced      unknown
verify         CompleteCommit  fenced      abortable   fenced      unknown
verify         CompleteAbort   fenced      abortable   fenced      unknown
commit         Empty           fenced      state       fenced      unknown
commit         Ongoing         fenced      -           fenced      unknown
commit         PrepareCommit   concurrent  concurrent  concurrent  concurrent
commit         PrepareAbort    concurrent  concurrent  concurrent  concurrent
commit         CompleteCommit  -           state       fenced      unknown
commit         CompleteAbort   state       state       fenced      unknown
abort          Empty           fenced      -           fenced      unknown
abort          Ongoing         fenced      -           fenced      unknown
abort          PrepareCommit   concurrent  concurrent  concurrent  concurrent
abort          PrepareAbort    concurrent  concurrent  concurrent  concurrent
abort          CompleteCommit  state       -           fenced      unknown
abort          CompleteAbort   -           -           fenced      unknown
commit-before  Empty           fenced      state       fenced      unknown
commit-before  Ongoing         fenced      -           fenced      unknown
commit-before  PrepareCommit   fenced      concurrent  fenced      unknown
commit-before  PrepareAbort    fenced      concurrent  fenced      unknown
commit-before  CompleteCommit  fenced      -           fenced      unknown
commit-before  CompleteAbort   fenced      state       fenced      unknown
abort-before   Empty           fenced      state       fenced      unknown
abort-before   Ongoing         fenced      -           fenced      unknown
abort-before   PrepareCommit   fenced      concurrent  fenced      unknown
abort-before   PrepareAbort    fenced      concurrent  fenced      unknown
abort-before   CompleteCommit  fenced      state       fenced      unknown
abort-before   CompleteAbort   fenced      -           fenced      unknown
"""
HEADER, *ROWS = [line.split() for line in TABLE.strip().splitlines()]


def transaction(state: TransactionState) -> Transaction:
    """Of a client with version 2, whose last request raised the epoch to the present one."""
    is_open = state is TransactionState.ONGOING or state.is_ending
    return Transaction(
        producer_id=ID,
        producer_epoch=EPOCH,
        last_epoch=EPOCH - 1,
        timeout_ms=1000,
        last_update_ms=10,
        state=state,
        partitions=PARTITION if is_open else frozenset(),
        client_version=V2,
    )


def answer(request: str, current: Transaction, producer: ProducerIdentity | None) -> ErrorCode:
    if request == "init":
        return rules.init_producer(current, 1000, producer, 20).error
    assert producer is not None
    match request:
        case "add":
            return rules.add_partitions(current, producer, PARTITION, V2, 20).error
        case "verify":
            return rules.verify_partitions(current, producer, PARTITION)["t", 0]
    action, _, is_before_version_2 = request.partition("-")
    version = V0 if is_before_version_2 else V2
    return rules.end_transaction(current, producer, version, 20, commits=action == "commit").error


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_each_producer_gets_the_answer_of_the_table(row: list[str]) -> None:
    request, state, *expected = row
    current = transaction(STATES_BY_LABEL[state])
    producers = HEADER[2 : 2 + len(expected)]
    found = {who: answer(request, current, PRODUCERS[who]) for who in producers}
    assert found == {who: ERRORS[error] for who, error in zip(producers, expected, strict=True)}


def test_the_table_has_every_request_in_every_state() -> None:
    requests = {"init", "add", "verify", "commit", "abort", "commit-before", "abort-before"}
    states = {label for label, state in STATES_BY_LABEL.items() if state < TransactionState.DEAD}
    assert {(request, state) for request, state, *_ in ROWS} == {(each, state) for each in requests for state in states}
