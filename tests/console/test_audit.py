"""Every change that the console has begun is in the audit log, with its outcome."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from odradek.console import context
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from tests.console.conftest import Visitor

AUDIT = "odradek.console.audit"


@pytest.fixture
def audit(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    logging.getLogger(AUDIT).propagate = True
    caplog.set_level(logging.INFO, AUDIT)
    return caplog


def test_a_change_is_logged_with_its_address(visitor: Visitor, topic: str, audit: pytest.LogCaptureFixture) -> None:
    visitor.post(f"/topics/{topic}/partitions", {"partitions": "3"})
    assert f"127.0.0.1: topic {topic}: 3 partitions: done" in audit.messages


def test_a_change_that_fails_partly_is_logged(
    visitor: Visitor, topic: str, audit: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any) -> Any:
        raise Failure("2 of 3 records were written")

    monkeypatch.setattr("odradek.console.cluster.records.replay", fail)
    visitor.post(f"/topics/{topic}/replay", [("record", "0:0"), ("target", topic)])
    assert any("failed: 2 of 3 records were written" in line for line in audit.messages)


def test_a_change_that_times_out_is_logged_and_so_is_its_late_outcome(
    visitor: Visitor, topic: str, audit: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, has_ended = threading.Event(), threading.Event()

    def wait(*_arguments: Any) -> None:
        may_end.wait(30)
        has_ended.set()

    monkeypatch.setattr(context, "CALL_TIMEOUT_S", 0.2)
    monkeypatch.setattr("odradek.console.pages.topics.delete_topic", wait)
    answer = visitor.post(f"/topics/{topic}/delete", {"confirmation": topic})
    assert answer.status == 504
    assert f"127.0.0.1: delete topic {topic}: unknown: no answer within 0.2 s" in audit.messages
    may_end.set()
    assert has_ended.wait(30)
    for _ in range(1000):
        if f"127.0.0.1: delete topic {topic}: done, after the page had been answered" in audit.messages:
            return
        threading.Event().wait(0.01)
    raise AssertionError(audit.messages)


def test_a_line_of_the_audit_log_cannot_be_forged(visitor: Visitor, audit: pytest.LogCaptureFixture) -> None:
    visitor.post("/new-topic", {"name": "a\nforged line\x1b[31m"})
    assert not any("\n" in line or "\x1b" in line for line in audit.messages)
    assert any("forged line" in line for line in audit.messages)
