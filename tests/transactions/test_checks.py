"""Each anomaly is found in a history that has it, and none in one that has not."""

from collections.abc import Callable

import pytest

from tests.transactions.checks import anomalies
from tests.transactions.history import Consumed, Ending, History, Reading, Seen, Transaction, Write

A, B, SOURCE = ("a", 0), ("b", 0), ("input", 0)


def consistent() -> History:
    """Three transactions: committed, aborted, and one without an answer, which is committed."""
    history = History()
    endings = [Ending.COMMITTED, Ending.ABORTED, Ending.UNKNOWN]
    for number, ending in enumerate(endings):
        transaction = history.begin("client", "t0")
        for partition in (A, B):
            value = f"{number}{partition[0]}".encode()
            transaction.writes.append(Write(value, partition, history.now(), offset=2 * number))
        transaction.consumed.append(Consumed("group-t0", SOURCE, 5 * (number // 2), 5 * (number // 2) + 5, True))
        transaction.ending = ending
        if ending is not Ending.ABORTED:
            transaction.commit_requested_at = history.now()
    for partition in (A, B):
        values = [f"{number}{partition[0]}".encode() for number in range(3)]
        everything = [Seen(2 * number, value, history.now()) for number, value in enumerate(values)]
        committed = [everything[0], everything[2]]
        history.final[partition, True] = Reading("last", partition, True, 5, seen=committed)
        history.final[partition, False] = Reading("last", partition, False, 5, seen=everything)
        history.readings.append(Reading("reader", partition, True, 5, seen=list(committed)))
    history.final_offsets["group-t0", SOURCE] = 10
    return history


def committed(history: History) -> Transaction:
    return history.transactions[0]


def final(history: History, *, is_committed_only: bool = True) -> list[Seen]:
    return history.final[A, is_committed_only].seen


def lose_a_write(history: History) -> None:
    del final(history)[0]


def show_an_aborted_write(history: History) -> None:
    final(history).insert(1, Seen(2, b"1a", history.now()))


def tear(history: History) -> None:
    del final(history)[1]


def show_too_early(history: History) -> None:
    history.readings[0].seen[0] = Seen(0, b"0a", 0)


def duplicate(history: History) -> None:
    final(history, is_committed_only=False).append(Seen(7, b"2a", history.now()))


def acknowledge_another_offset(history: History) -> None:
    committed(history).writes[0].offset = 1


def show_another_value(history: History) -> None:
    history.readings[0].seen[0] = Seen(0, b"2a", history.now())


def reorder_sends(history: History) -> None:
    committed(history).writes[0].sent_at = 100


def reorder_polls(history: History) -> None:
    history.readings[0].seen.reverse()


def skip(history: History) -> None:
    del history.readings[0].seen[0]


def lose_after_a_read(history: History) -> None:
    history.readings[0].seen.append(Seen(9, b"2a", history.now()))


def consume_twice(history: History) -> None:
    history.transactions[2].consumed[0].first_offset = 3


def consume_not(history: History) -> None:
    history.transactions[2].consumed[0].first_offset = 7


def commit_offset_of_an_aborted_transaction(history: History) -> None:
    history.final_offsets["group-t0", SOURCE] = 12


def keep_open(history: History) -> None:
    history.incomplete["t0"] = "Ongoing"


def hold_the_last_stable_offset(history: History) -> None:
    history.unstable[A] = (2, 5)


def show_what_nobody_wrote(history: History) -> None:
    final(history).append(Seen(8, b"?", history.now()))


def test_a_consistent_history_has_no_anomaly() -> None:
    assert anomalies(consistent()) == []


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (lose_a_write, "lost write"),
        (show_an_aborted_write, "aborted read"),
        (tear, "torn transaction"),
        (show_too_early, "precommitted read"),
        (duplicate, "duplicate"),
        (acknowledge_another_offset, "inconsistent offsets"),
        (show_another_value, "inconsistent offsets"),
        (reorder_sends, "nonmonotonic send"),
        (reorder_polls, "nonmonotonic poll"),
        (skip, "skipped poll"),
        (lose_after_a_read, "lost read"),
        (consume_twice, "consumed twice"),
        (consume_not, "lost offset"),
        (commit_offset_of_an_aborted_transaction, "group offset"),
        (keep_open, "hanging transaction"),
        (hold_the_last_stable_offset, "hanging transaction"),
        (show_what_nobody_wrote, "unknown record"),
    ],
)
def test_an_anomaly_is_found(fault: Callable[[History], None], name: str) -> None:
    history = consistent()
    fault(history)
    assert name in {each.partition(":")[0] for each in anomalies(history)}
