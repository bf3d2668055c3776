"""Metrics in the format of OpenTelemetry: what is read, what is refused, and what a hostile push costs."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.telemetry.otlp import (
    FIELDS_BETWEEN_PAUSES,
    MOST_FIELDS,
    MOST_POINTS,
    Kind,
    MalformedMetrics,
    Point,
    read_metrics,
)
from tests.telemetry.otlp_data import counter, field, fixed, gauge, histogram, metrics_data

NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=30)


def test_gauges_sums_and_histograms_are_read() -> None:
    data = metrics_data(
        gauge("buffer", 1.5, topic="orders"), counter("sent", -3), histogram("latency", 4, 10.25, node="1", api="x")
    )
    assert read_metrics(data) == [
        Point("buffer", (("topic", "orders"),), Kind.GAUGE, 1.5, 1, False),
        Point("sent", (), Kind.SUM, -3.0, 1, True),
        Point("latency", (("api", "x"), ("node", "1")), Kind.HISTOGRAM, 10.25, 4, True),
    ]


@given(st.lists(st.tuples(NAMES, st.integers(-(2**53), 2**53), st.dictionaries(NAMES, NAMES, max_size=3))))
def test_what_is_written_is_read(values: list[tuple[str, int, dict[str, str]]]) -> None:
    data = metrics_data(*(counter(name, value, is_delta=False, **given) for name, value, given in values))
    assert [(each.name, each.value, dict(each.attributes)) for each in read_metrics(data)] == values


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(MalformedMetrics):
        read_metrics(data)


@given(st.data())
def test_changed_bytes_are_read_or_refused(draw: st.DataObject) -> None:
    data = bytearray(metrics_data(gauge("buffer", 1.5, topic="orders"), counter("sent", 3)))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedMetrics):
        read_metrics(bytes(data[: draw.draw(st.integers(0, len(data)))]))


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\xff\xff\xff\xff\x0f",  # declares 4 GiB
        b"\x0a" + b"\x80" * 11,
        b"\x0b\x0c",  # groups are not supported
        field(1, b"\x12\x05abc"),
        metrics_data(*[counter("n", 1)] * (MOST_POINTS + 1)),
        b"\x10\x01" * (MOST_FIELDS + 1),
        (b"\x10" + b"\xff" * 9 + b"\x01") * (MOST_FIELDS // 8),  # each number counts as nine fields
    ],
)
def test_malformed_and_excessive_metrics_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedMetrics):
        read_metrics(data)


def test_unknown_fields_and_kinds_are_skipped() -> None:
    summary = field(1, b"summary") + field(11, field(1, b""))
    extended = counter("sent", 3) + field(99, b"future") + fixed(98, bytes(8))
    assert [each.name for each in read_metrics(metrics_data(summary, extended) + field(7, b"x"))] == ["sent"]


def test_names_and_attributes_are_bounded_and_printable() -> None:
    many = {f"name{number}": "x" * 1000 for number in range(40)}
    (point,) = read_metrics(metrics_data(gauge("a\x1b[31m" + "n" * 1000, 1.0, **many)))
    assert len(point.name) == 200
    assert "\x1b" not in point.name
    assert len(point.attributes) == 16
    assert max(len(value) for _, value in point.attributes) == 200


def test_other_types_of_attribute_values_become_text() -> None:
    values = [field(2, 1), field(3, -7 & (1 << 64) - 1), fixed(4, bytes(6) + b"\xf0\x3f"), field(5, b"list")]
    point = b"".join(field(7, field(1, b"k") + field(2, value)) for value in values)
    data = metrics_data(field(1, b"n") + field(5, field(1, point)))
    assert [value for _, value in read_metrics(data)[0].attributes] == sorted(["true", "-7", "1.0", ""])


def points_with_attributes(text: bytes) -> bytes:
    point = field(7, field(1, text) + field(2, field(1, text))) * 16
    return metrics_data(field(1, b"n") + field(5, field(1, point) * 500))


HOSTILE = {
    "empty metrics": field(1, field(2, b"\x12\x00" * 500_000)),
    "long numbers": (b"\x10" + b"\xff" * 9 + b"\x01") * 100_000,
    "long keys": (b"\x90" + b"\x80" * 8 + b"\x00" + b"\xff" * 9 + b"\x01") * 50_000,
    "control characters": points_with_attributes(b"\x01" * 200),
    "bytes that are not UTF-8": points_with_attributes(b"\xff" * 800),
    "characters that cannot be shown": points_with_attributes("\U000e0001".encode() * 200),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_push_is_refused_in_milliseconds(kind: str) -> None:
    """About 10 ms at most on an idle core (2 to 9 ms measured), and four times as much here; the best of five runs."""

    def read() -> float:
        began = time.process_time()
        with pytest.raises(MalformedMetrics):
            read_metrics(HOSTILE[kind])
        return time.process_time() - began

    assert min(read() for _ in range(5)) < 0.04


def test_a_client_with_hundreds_of_partitions_is_read() -> None:
    data = metrics_data(
        *(gauge(f"lag{number}", 1.0, client_id="app", topic="orders", partition="7") for number in range(500))
    )
    assert len(read_metrics(data)) == 500


def test_worker_pauses_between_runs_of_fields() -> None:
    pauses: list[bool] = []
    data = metrics_data(*(counter(f"n{number}", number) for number in range(300)))
    assert read_metrics(data, lambda: pauses.append(True)) == read_metrics(data)
    assert 300 * 5 // FIELDS_BETWEEN_PAUSES <= len(pauses) <= 300 * 20 // FIELDS_BETWEEN_PAUSES
