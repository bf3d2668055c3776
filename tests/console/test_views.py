"""The values that templates show: figures, pages of lists, decoded records, trends. No cluster is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.admin.broker_requests import DescribedCluster, KnownBroker
from odradek.admin.cluster_state import ClusterState, PartitionState
from odradek.admin.groups import PartitionLag
from odradek.admin.log_directories import Disks, LogDirectory
from odradek.console.cluster.groups import LagSummary
from odradek.console.cluster.records import Reading
from odradek.console.cluster.snapshot import Snapshot, examine, growth_bytes, rates_by_topic, summarize
from odradek.console.models import Samples, Series
from odradek.console.records.masking import mask, parse_rule
from odradek.console.records.record import Record, parse_filter
from odradek.console.settings import ConsoleSettings
from odradek.console.views.figures import age, compact, moment, number, ranges, rate, setting_hint, size, sparkline
from odradek.console.views.groups import MOST_TOPICS, assignment_text, trend_of
from odradek.console.views.overview import overview
from odradek.console.views.records import RecordRow, consume_command, decode, detail, one_line, row
from odradek.console.views.topics import COLUMNS, list_topics, parse_query
from odradek.console.web.rendering import Renderer
from odradek.console.web.safety import Tokens

if TYPE_CHECKING:
    from collections.abc import Sequence


def snapshot_of(topics: int, partitions: int = 1, in_sync: tuple[int, ...] = (1, 2), leader: int = 1) -> Snapshot:
    brokers = {each: KnownBroker(each, "kafka", 9090 + each, None, each not in in_sync) for each in (1, 2)}
    found = [
        PartitionState(f"topic-{name:05d}", index, leader, (1, 2), in_sync)
        for name in range(topics)
        for index in range(partitions)
    ]
    state = ClusterState(DescribedCluster("cluster", 1, brokers), found)
    starts = {(each.topic, each.index): 0 for each in found}
    ends = {(each.topic, each.index): 10 for each in found}
    directory = LogDirectory(1, "/data", 0, len(found), 500, 1_000, 400)
    disks = Disks({(1, each.topic, each.index): 100 for each in found}, (directory,))
    summaries = summarize(state, starts, ends, disks, {"topic-00003": 7.0})
    return Snapshot(1_000.0, state, examine(state), starts, ends, disks, summaries)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (number(None), "–"),
        (number(1234567), "1,234,567"),
        (compact(999), "999"),
        (compact(12_400), "12.4 k"),
        (compact(999_950), "1.0 M"),
        (compact(3.1e9), "3.1 G"),
        (rate(0), "0"),
        (setting_hint("retention.ms", "604800000"), "7 d"),
        (setting_hint("segment.bytes", "1073741824"), "1.1 GB"),
        (setting_hint("retention.bytes", "-1"), ""),
        (setting_hint("retention.ms", "٣٣٣٣٣"), ""),
        (setting_hint("file.delete.delay.ms", None), ""),
        (rate(2.25), "2.2"),
        (rate(5_200), "5.2 k"),
        (size(-1), "–"),
        (size(999), "999 B"),
        (size(1_500), "1.5 KB"),
        (size(123_456_789), "123 MB"),
        (age(None), "–"),
        (age(0), "0 ms"),
        (age(8_200), "8.2 s"),
        (age(120_000), "2 min"),
        (age(90 * 86_400_000), "90 d"),
        (moment(1_767_225_600_123), "2026-01-01 00:00:00.123"),
        (moment(2**62), str(2**62)),
    ],
)
def test_figures_are_short_and_have_units(text: str, expected: str) -> None:
    assert text == expected


def test_a_sparkline_begins_with_the_first_value() -> None:
    assert sparkline([None, None, 5.0]) == ""
    points = sparkline([None, 1.0, None, 2.0]).split()
    assert [point.split(",")[0] for point in points] == ["32.0", "64.0", "96.0"]
    assert points[0].split(",")[1] == points[1].split(",")[1]


@pytest.mark.parametrize(
    ("values", "trend"),
    [
        ([], ""),
        ([None, 4.0], ""),
        ([100, 101], "steady"),
        ([100, 140], "growing"),
        ([100, None, 20], "shrinking"),
        ([0, 0], "steady"),
        ([0, 0, *[None] * 6], ""),  # the list shows no lag beside it
    ],
)
def test_a_trend_compares_the_last_minutes(values: list[float | None], trend: str) -> None:
    assert trend_of(values) == trend


def test_the_lag_in_time_is_unknown_if_that_of_a_partition_behind_is() -> None:
    lags = [PartitionLag("t", 0, 10, 10, None, 0), PartitionLag("t", 1, 10, 100_000)]
    summary = LagSummary(2, 99_990, 0, 1, lags)
    assert (summary.time_lag_ms, summary.untimed) == (None, 1)
    lags[1].time_lag_ms = 500
    assert (summary.time_lag_ms, summary.untimed) == (500, 0)


def test_members_are_shown_with_their_partitions() -> None:
    orders = [("orders", each) for each in (0, 1, 2, 4)]
    assert assignment_text((*orders, ("payments", 2))) == "orders 0–2, 4 · payments 2"
    assert assignment_text(()) == ""


def test_of_an_assignment_with_many_topics_the_first_are_shown() -> None:
    text = assignment_text([(f"topic-{number:03}", index) for number in range(MOST_TOPICS + 1) for index in range(3)])
    assert text.startswith("topic-000 0–2 · topic-001 0–2")
    assert text.endswith("topic-019 0–2 · … 63 partitions of 21 topics")


def test_topics_are_searched_sorted_and_cut_into_pages() -> None:
    snapshot = snapshot_of(120)
    series = Series(10)
    page = list_topics(snapshot, series, parse_query({"page": "3"}))
    assert (len(page.rows), page.first, page.last, page.total, page.pages) == (20, 101, 120, 120, 3)
    assert [row.topic.name for row in list_topics(snapshot, series, parse_query({"q": "TOPIC 119"})).rows] == [
        "topic-00119"
    ]
    fastest = list_topics(snapshot, series, parse_query({"sort": "rate", "down": "1"})).rows
    assert [row.topic.name for row in fastest[:2]] == ["topic-00003", "topic-00000"]
    assert list_topics(snapshot, series, parse_query({"page": "999", "sort": "none"})).number == 3
    assert list_topics(snapshot, series, parse_query({"only": "problems"})).total == 0


def test_a_page_of_ten_thousand_topics_is_as_small_as_one_of_a_hundred() -> None:
    renderer = Renderer(Tokens(), ConsoleSettings(), "kafka:9092")
    sizes = []
    for topics in (100, 10_000):
        page = list_topics(snapshot_of(topics), Series(10), parse_query({}))
        query = parse_query({})
        shown = renderer.fragment("topics_table.html", page=page, query=query, columns=COLUMNS, has_topics=True)
        assert shown.count("<tr>") == 51
        sizes.append(len(shown))
    assert sizes[1] < sizes[0] * 1.1


def test_partitions_of_users_come_before_internal_ones() -> None:
    brokers = {1: KnownBroker(1, "kafka", 9091, None, False)}
    found = [PartitionState(name, 0, 1, (1, 2), (1,)) for name in ("__consumer_offsets", "orders")]
    health = examine(ClusterState(DescribedCluster("cluster", 1, brokers), found))
    assert [each.topic for each in health.problems] == ["orders", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("in_sync", "leader", "words", "tone"),
    [
        ((1, 2), 1, "All brokers run", "good"),
        ((1,), 1, "1 broker fenced", "warn"),
        ((1,), -1, "without a leader", "bad"),
    ],
)
def test_the_overview_says_what_is_wrong(in_sync: tuple[int, ...], leader: int, words: str, tone: str) -> None:
    view = overview(snapshot_of(3, in_sync=in_sync, leader=leader), Samples(2), Series(10))
    assert words in view.headline
    assert view.tone == tone
    assert bool(view.problems) == (tone != "good")


def test_the_overview_of_a_cluster_that_does_not_answer_calls_no_broker_running() -> None:
    view = overview(snapshot_of(3), Samples(2), Series(10), is_answering=False)
    assert (view.headline, view.tone) == ("The cluster does not answer", "bad")
    assert "running" not in view.tiles[0].note


def test_rates_count_partitions_that_were_there_before() -> None:
    before, after = {("a", 0): 5, ("a", 1): 5, ("b", 0): 9}, {("a", 0): 15, ("a", 1): 10, ("b", 0): 2, ("c", 0): 99}
    assert rates_by_topic(before, after, 5.0) == {"a": 3.0}
    assert rates_by_topic(before, after, 0.0) == {}
    assert growth_bytes(Disks({(1, "a", 0): 5, (1, "b", 0): 9}), Disks({(1, "a", 0): 8, (1, "b", 0): 1})) == 3


@pytest.mark.parametrize(
    ("value", "form", "kind", "text"),
    [
        (None, "auto", "null", "null"),
        (b"", "auto", "empty", ""),
        (b'{"a":1}', "auto", "json", '{\n  "a": 1\n}'),
        (b"17", "auto", "text", "17"),
        (b"17", "json", "json", "17"),
        (b"plain", "json", "text", "plain"),
        ("grüße\n".encode(), "auto", "text", "grüße\n"),
        (b"\xff\x00A", "auto", "hex", "000000  ff 00 41" + " " * 41 + "ÿ·A"[1:].rjust(3, "·")),
        (b"\x00bin", "auto", "hex", None),
        (b"AB", "hex", "hex", None),
        (b"\xffA", "text", "text", "\ufffdA"),
    ],
)
def test_a_value_is_decoded_by_its_bytes(value: bytes | None, form: str, kind: str, text: str | None) -> None:
    decoded = decode(value, form)
    assert decoded.kind == kind
    assert text is None or decoded.text == text


@pytest.mark.parametrize(
    "value", [b'{"half": "\\ud800"}', b"[" * 600 + b"]" * 600, b"[" * 50_000, b'{"n": ' + b"9" * 5_000 + b"}"]
)
def test_a_document_made_to_break_the_console_is_shown(value: bytes) -> None:
    record = Record("t", 0, 0, 0, value, value, (("h", value),) * 1_000)
    shown = detail(record, "auto")
    shown.value.text.encode()
    assert len(shown.headers) == 200
    masked = mask(record, [parse_rule("$.half"), parse_rule("$..n")])
    detail(masked, "json").value.text.encode()
    for wanted in (("json", "contains", "x", "$"), ("any", "contains", "x", "")):
        parse_filter(*wanted).matches(masked)


def test_a_row_is_short_and_has_no_control_characters() -> None:
    line = one_line(b"a\x1b[31m\n" + b"b" * 5_000, 100)
    assert len(line.text) == 100
    assert line.text.isprintable()
    assert one_line(b"\xff\xfe" * 500, 60).kind == "hex"
    assert one_line("ü".encode() * 500, 61).kind == "text"


def rows_at(*offsets: int) -> list[RecordRow]:
    return [row(Record("t", 1, offset, 0, None, b"")) for offset in offsets]


@pytest.mark.parametrize(
    ("reading", "chosen", "note"),
    [
        (Reading("orders", 3, "offset", offset=42, limit=25), "--offset 42 --partition 3 … --max-records 25", ""),
        (Reading("orders", 3, limit=25), "--last 25 --partition 3 … --max-records 25", ""),
        (Reading("orders", limit=25), "--last 25 …", "It prints the newest 25 records of each partition."),
        (
            Reading("orders", None, "oldest", limit=25),
            "--from-beginning … --max-records 25",
            "It prints the first 25 records that arrive, of any partition.",
        ),
    ],
)
def test_the_command_reads_what_the_page_reads(reading: Reading, chosen: str, note: str) -> None:
    """Of several partitions the page has the first or the newest records by time, which no command prints."""
    command = consume_command("kafka:9092", reading, parse_filter("any", "contains", "", ""), [])
    options = chosen.replace("…", "--until-end --keys --timestamps --offsets")
    assert command == (f"odradek consume orders -b kafka:9092 {options}", note)


@pytest.mark.parametrize(
    ("offset", "offsets", "options"),
    [
        (10, range(10), "--offset 0 --partition 3 … --max-records 10"),
        (1_010, range(1_000, 1_010), "--offset 1000 --partition 3 … --max-records 10"),  # retention deleted the others
        (900, (5, 6, 70), "--offset 5 --partition 3 … --max-records 3"),  # compaction removed the others
    ],
)
def test_the_command_of_a_page_before_an_offset_reads_its_records(
    offset: int, offsets: Sequence[int], options: str
) -> None:
    wanted = parse_filter("any", "contains", "", "")
    reading = Reading("orders", 3, "before", offset, limit=50)
    command = consume_command("kafka:9092", reading, wanted, rows_at(*reversed(offsets)))
    options = options.replace("…", "--until-end --keys --timestamps --offsets")
    assert command == (f"odradek consume orders -b kafka:9092 {options}", "")
    assert consume_command("kafka:9092", reading, wanted, []) is None


@pytest.mark.parametrize(
    ("given", "ending", "note"),
    [
        (("value", "contains", "it's", ""), "--offsets | grep -i -F -- 'it'\"'\"'s'", "not in the value only"),
        (("any", "contains", "x", ""), "--offsets --headers | grep -i -F -- x", "that have the text anywhere."),
        (("header", "contains", "x", "trace"), "--offsets", "The filter is not part of the command"),
        (("json", "equals", "1", "$.id"), "--offsets", "The filter is not part of the command"),
        (("value", "differs", "x", ""), "--offsets", "The filter is not part of the command"),
    ],
)
def test_the_command_says_what_it_leaves_out_of_a_filter(
    given: tuple[str, str, str, str], ending: str, note: str
) -> None:
    command = consume_command("kafka:9092", Reading("orders"), parse_filter(*given), [])
    assert command is not None
    assert command.text.startswith("odradek consume orders -b kafka:9092 --from-beginning --until-end")
    assert command.text.endswith(ending)
    assert note in command.note


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([1, 0], "0, 1"),
        ([0, 1, 2], "0–2"),
        ([9, 4, 0, 1, 2, 3, 7, 8], "0–4, 7–9"),
    ],
)
def test_numbers_in_a_row_are_shown_as_a_range(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text
