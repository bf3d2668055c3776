"""Answers go out in the order of their end offsets, or are refused, once."""

import pytest

from odradek.coordinator.runtime.commit_waits import CommitWait, CommitWaits
from odradek.protocol.errors import ErrorCode
from tests.coordinator.runtime.counter import Answer


def make(*end_offsets: int) -> tuple[CommitWaits, list[Answer]]:
    waits, answers = CommitWaits(), [Answer() for _ in end_offsets]
    for end_offset, answer in zip(end_offsets, answers, strict=True):
        waits.add(CommitWait(end_offset, 100.0 * end_offset, answer, end_offset))
    return waits, answers


def test_what_is_committed_is_answered_and_the_rest_waits() -> None:
    waits, answers = make(1, 3, 3, 4)
    waits.release(2)
    assert [answer.response for answer in answers] == [1, None, None, None]
    waits.release(3)
    assert [answer.response for answer in answers] == [1, 3, 3, None]
    assert len(waits) == 1


def test_refusing_all_leaves_nothing() -> None:
    waits, answers = make(1, 2)
    waits.release(1)
    waits.refuse_all(ErrorCode.NOT_COORDINATOR)
    waits.refuse_all(ErrorCode.NOT_COORDINATOR)
    assert [answer.error for answer in answers] == [None, ErrorCode.NOT_COORDINATOR]
    assert waits.next_deadline_ms is None


def test_overdue_answers_are_refused_by_their_deadline() -> None:
    waits, answers = make(1, 2)
    waits.refuse_overdue(150, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert [answer.error for answer in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE, None]
    assert waits.next_deadline_ms == 200


def test_a_log_end_that_moves_back_is_a_bug() -> None:
    waits, _ = make(2)
    with pytest.raises(AssertionError):
        waits.add(CommitWait(1, 0, Answer(), None))
