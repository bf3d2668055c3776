"""What the demo counts and shows: its own records in columns, those of anyone else as text, in 80 columns."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any, cast

import pytest
from rich.console import Console, Group

from odradek.cli.demo.broker_demo import COLUMNS, HEADER, WARM_UP_NS, Screen, sent_header
from odradek.cli.framework.output import cut_text

if TYPE_CHECKING:
    from confluent_kafka import Message

OURS = (
    b'{"event_ID":122,"hcid":63,"timestamp":"2015-01-01 00:00:02","production":47,'
    b'"sensor_readings":{"pressure":107,"temperature":30,"oil_percentage":18},"injection_vol":15367}'
)


class FakeMessage:
    def __init__(self, value: bytes | None, headers: list[tuple[str, Any]] | None = None, offset: int = 0) -> None:
        self._value, self._headers, self._offset = value, headers, offset

    def error(self) -> None:
        return None

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> list[tuple[str, Any]] | None:
        return self._headers

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return self._offset


def message(value: bytes | None, headers: list[tuple[str, Any]] | None = None, offset: int = 0) -> Message:
    return cast("Message", FakeMessage(value, headers, offset))


def warm(screen: Screen) -> Screen:
    screen.measured_from_ns = 0
    return screen


def picture(screen: Screen) -> list[str]:
    output = StringIO()
    Console(file=output, width=80, height=24).print(Group(cut_text(screen.picture(50))))
    return output.getvalue().splitlines()


def test_our_own_record_is_counted_and_timed() -> None:
    screen = warm(Screen("127.0.0.1:9092", "rigs", 0.1))
    screen.take(message(OURS, sent_header(screen.run_id, 1_000_000)), 3_000_000)
    assert (screen.received, screen.others, list(screen.latencies_ms)) == (1, 0, [2.0])


def test_records_sent_during_the_warm_up_do_not_count_for_the_latency() -> None:
    """Sent before the end of the warm-up, received after it: what such a record waited for is the warm-up itself."""
    screen = Screen("127.0.0.1:9092", "rigs", 0.1)
    first_received_ns = 5_000_000_000
    screen.take(message(OURS, sent_header(screen.run_id, 1_000_000_000)), first_received_ns)
    late_ns = first_received_ns + WARM_UP_NS
    screen.take(message(OURS, sent_header(screen.run_id, late_ns - 1)), late_ns + 900_000_000)
    assert (screen.received, list(screen.latencies_ms)) == (2, [])
    screen.take(message(OURS, sent_header(screen.run_id, late_ns)), late_ns + 2_000_000)
    assert list(screen.latencies_ms) == [2.0]


@pytest.mark.parametrize("value", [b"hello", b'{"a":1}', b"[]", b"", None, b"\xff", b"{" * 10_000, OURS])
@pytest.mark.parametrize("header", [None, b"", b"another-run 1", b"another-run", "text"])
def test_a_record_of_another_is_shown_and_not_counted(value: bytes | None, header: Any) -> None:
    screen = warm(Screen("127.0.0.1:9092", "rigs", 0.1))
    screen.take(message(value, None if header is None else [(HEADER, header)]), 3_000_000)
    assert (screen.received, screen.others, list(screen.latencies_ms)) == (0, 1, [])
    assert picture(screen)


@pytest.mark.parametrize("value", [b"hello", b'{"sensor_readings":1}', b"[]", None, b"[" * 100_000])
def test_our_header_on_anothers_value_is_anothers_record(value: bytes | None) -> None:
    screen = warm(Screen("127.0.0.1:9092", "rigs", 0.1))
    screen.take(message(value, sent_header(screen.run_id, 1)), 2)
    assert (screen.received, screen.others) == (0, 1)


def test_the_table_fits_80_columns_and_cuts_nothing_of_ours() -> None:
    screen = warm(Screen("127.0.0.1:19092", "rigs", 0.1))
    screen.sent = screen.received = 123_456_789
    for offset in range(10):
        screen.take(message(OURS, sent_header(screen.run_id, 1), offset + 9_000_000), 50_000_000)
    lines = picture(screen)
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24
    title = next(line for line in lines if "pressure" in line)
    assert title.split() == " ".join(COLUMNS).split()
    assert not any("…" in line for line in lines)
    row = lines[lines.index(title) + 1].split()
    assert row[:2] == ["2", "9,000,000"]
    assert len(row) == len(COLUMNS)


def test_a_long_text_of_another_is_cut_to_the_line() -> None:
    screen = warm(Screen("127.0.0.1:9092", "rigs", 0.1))
    screen.take(message(b"\x1b[31m" + b"long " * 100), 1)
    (line,) = [line for line in picture(screen) if "long" in line]
    assert len(line) <= 80
    assert line.rstrip().endswith("…")
    assert "\\x1b[31m" in line


def test_the_footer_names_the_command_as_it_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.cli.demo.broker_demo.command_name", lambda: ".venv/bin/odradek")
    monkeypatch.delenv("ODRADEK_BOOTSTRAP_SERVER", raising=False)
    assert ".venv/bin/odradek consume rigs --from-beginning" in picture(Screen("127.0.0.1:9092", "rigs", 0.1))[-1]
    elsewhere = picture(Screen("127.0.0.1:9192", "rigs", 0.1))[-1]
    assert elsewhere.rstrip() == ".venv/bin/odradek consume rigs --from-beginning -b 127.0.0.1:9192"
