"""`odradek partition move`: on a real broker with two log directories, and moves that do not end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from odradek.admin.broker_requests import BrokerRequests, KnownBroker
from odradek.admin.errors import NotAuthorized
from odradek.admin.log_directories import Copy, failed_text, read_copies
from odradek.cli import partition as moving
from odradek.cli.partition import plan_moves, question
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.testing import RunningBroker
from tests.commands import run_odradek

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.mark.parametrize(
    ("directory", "moved", "cancelled", "text"),
    [
        ("/one", [], [("/two", 0)], "Cancel 1 move?"),
        ("/two", [("/one", 0), ("/one", 1)], [], "Move 2 replicas?"),
        ("/three", [("/one", 0), ("/one", 1)], [], "Move 2 replicas?"),
    ],
)
def test_a_move_to_the_own_directory_cancels(
    directory: str, moved: list[tuple[str, int]], cancelled: list[tuple[str, int]], text: str
) -> None:
    copies = [Copy("pump", 0, "/one", 9, False), Copy("pump", 1, "/one", 9, False), Copy("pump", 0, "/two", 1, True)]
    plan = plan_moves(copies, directory)
    assert [[(each.path, each.partition) for each in part] for part in plan] == [moved, cancelled]
    assert question(*plan) == text


def test_replicas_move_to_another_log_directory(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    broker = RunningBroker({"log.dirs": f"{one},{two}"}, data_directory=one)
    try:
        broker.start()
        server = ("--bootstrap-server", broker.bootstrap_servers)
        assert run_odradek("topic", "create", "pump", "--partitions", "2", *server).code == 0
        wrong = run_odradek("partition", "move", "pump", "--broker", "0", "--directory", "/none", "--yes", *server)
        assert (wrong.code, "has no log directory /none" in wrong.errors) == (1, True)
        command = ("partition", "move", "pump", "--broker", "0", "--directory", two, "--yes")
        alone = run_odradek(*command, "--timeout", "5", *server)
        assert (alone.code, "--timeout is the longest wait of --wait" in alone.errors) == (1, True)
        done = run_odradek(*command, "--wait", "--timeout", "30", "--format", "json", *server)
        assert done.code == 0, done.errors
        assert [(each["from"], each["to"]) for each in json.loads(done.output)["replicas"]] == [(one, two)]
        assert json.loads(done.output)["cancelled"] == []
        again = run_odradek(*command, *server)
        assert "nothing to move" in again.output
    finally:
        broker.close()


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
    monkeypatch.setattr(moving, "POLL_INTERVAL_S", 0.001)
    monkeypatch.setattr(moving, "STALLED_S", 0.1)


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
    moving.wait_for_moves(answers.requests, BROKER, PLANNED, "/two", None)


def test_a_move_that_was_given_up_is_named_with_the_failed_directory() -> None:
    answers = Answers(answer([("/one", 100, False), ("/two", 10, True)]), answer([("/one", 100, False)], ["/two"]))
    with pytest.raises(Failure, match=r"pump-0 was not moved: .*; broker 1 cannot use /two \(KAFKA_STORAGE_ERROR\)"):
        moving.wait_for_moves(answers.requests, BROKER, PLANNED, "/two", None)


def test_a_move_without_progress_ends_the_wait() -> None:
    answers = Answers(answer([("/one", 100, False), ("/two", 10, True)]))
    with pytest.raises(Failure, match=r"nothing was copied for 0\.1 s; the move goes on"):
        moving.wait_for_moves(answers.requests, BROKER, PLANNED, "/two", None)


def test_the_wait_has_a_time_limit() -> None:
    growing = [answer([("/one", 100, False), ("/two", size, True)]) for size in range(5000)]
    with pytest.raises(Failure, match=r"pump-0 is not moved after 0\.05 s; the move goes on"):
        moving.wait_for_moves(Answers(*growing).requests, BROKER, PLANNED, "/two", 0.05)
