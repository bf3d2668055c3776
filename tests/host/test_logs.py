"""Log lines have what they promise: a reason that says something, and a traceback for what nobody expected."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from odradek.host.logs import JsonFormatter, get_logger

STANDARD = logging.getLogger(__name__)
log = get_logger(__name__)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    STANDARD.addHandler(handler)
    yield stream
    STANDARD.removeHandler(handler)


@pytest.mark.parametrize(
    ("problem", "reason"),
    [(OSError("disk full"), "disk full"), (TimeoutError(), "TimeoutError"), (KeyError(), "KeyError")],
)
def test_an_exception_is_logged_as_its_text_or_its_type(lines: io.StringIO, problem: Exception, reason: str) -> None:
    log.warning("not written", reason=problem)
    assert json.loads(lines.getvalue())["reason"] == reason


def test_an_expected_failure_is_a_warning_without_traceback(lines: io.StringIO) -> None:
    log.failure("not written", TimeoutError(), expected=(OSError, ValueError), path="a")
    line = json.loads(lines.getvalue())
    assert (line["level"], line["path"], line["reason"]) == ("warning", "a", "TimeoutError")
    assert line.keys().isdisjoint({"exception", "exc_info"})


def test_an_unexpected_failure_is_an_error_with_traceback(lines: io.StringIO) -> None:
    log.failure("not written", KeyError("a"), expected=OSError)
    line = json.loads(lines.getvalue())
    assert line["level"] == "error"
    assert "KeyError: 'a'" in line["exception"]
