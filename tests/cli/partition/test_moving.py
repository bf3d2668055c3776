"""Waiting for moves between log directories: errors of the broker, and moves that do not end."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from odradek.admin.broker_requests import BrokerRequests, KnownBroker
from odradek.admin.errors import NotAuthorized
from odradek.admin.partitions.copies import Copy, failed_text, read_copies
from odradek.cli.partition import move
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

BROKER = KnownBroker(1, "127.0.0.1", 9092, None, False)
PLANNED = [Copy("pump", 0, "/one", 100, False)]


class Answers:
    """The answers of a broker, one after the other; the last one is repeated."""

    def __init__(self, *answers: DescribeLogDirsResponse) -> None:
        self._answers = list(answers)

    def ask(self, *_: object) -> DescribeLogDirsResponse:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    @property
    def requests(self) -> BrokerRequests:
        return cast("BrokerRequests", self)


def answer(copies: Sequence[tuple[str, int, bool]], failed: Sequence[str] = ()) -> DescribeLogDirsResponse:
    """With copies of pump-0: log directory, size, whether it is a future one."""
    results = [
        DescribeLogDirsResult(
            log_dir=path,
            topics=[
                DescribeLogDirsTopic(
                    name="pump",
                    partitions=[
                        DescribeLogDirsPartition(partition_index=0, partition_size=size, is_future_key=is_future)
                    ],
                )
            ],
        )
        for path, size, is_future in copies
    ]
    results += [DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR) for path in failed]
    return DescribeLogDirsResponse(results=results)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move, "POLL_INTERVAL_S", 0.001)
    monkeypatch.setattr(move, "STALLED_S", 0.1)


def test_an_error_of_the_response_is_reported() -> None:
    refused = DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(NotAuthorized, match="log directories of broker 1: this user is not authorized"):
        read_copies(Answers(refused).requests, BROKER)


def test_log_directories_that_failed_are_named() -> None:
    found = read_copies(Answers(answer([("/one", 100, False)], failed=["/two"])).requests, BROKER)
    assert found.paths == ["/one", "/two"]
    assert failed_text(BROKER, found) == "; broker 1 cannot use /two (KAFKA_STORAGE_ERROR)"


def test_the_wait_ends_with_the_move() -> None:
    answers = Answers(
        answer([("/one", 100, False), ("/two", 10, True)]),
        answer([("/one", 100, False), ("/two", 90, True)]),
        answer([("/two", 100, False)]),
    )
    move.wait_for(answers.requests, BROKER, PLANNED, "/two", None)


def test_a_move_that_was_given_up_is_named_with_the_failed_directory() -> None:
    answers = Answers(answer([("/one", 100, False), ("/two", 10, True)]), answer([("/one", 100, False)], ["/two"]))
    with pytest.raises(Failure, match=r"pump-0 was not moved: .*; broker 1 cannot use /two \(KAFKA_STORAGE_ERROR\)"):
        move.wait_for(answers.requests, BROKER, PLANNED, "/two", None)


def test_a_move_without_progress_ends_the_wait() -> None:
    answers = Answers(answer([("/one", 100, False), ("/two", 10, True)]))
    with pytest.raises(Failure, match=r"nothing was copied for 0\.1 s; the move goes on"):
        move.wait_for(answers.requests, BROKER, PLANNED, "/two", None)


def test_the_wait_has_a_time_limit() -> None:
    growing = [answer([("/one", 100, False), ("/two", size, True)]) for size in range(5000)]
    with pytest.raises(Failure, match=r"pump-0 is not moved after 0\.05 s; the move goes on"):
        move.wait_for(Answers(*growing).requests, BROKER, PLANNED, "/two", 0.05)
