"""Every page against a real broker: what it shows, what its forms change, and what they refuse."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from odradek.admin.broker_metrics import serves_metrics
from odradek.admin.cluster import Cluster
from odradek.admin.groups import group_names
from tests.console.conftest import Visitor, running_console

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0


def consume_and_commit(bootstrap_server: str, topic: str, group: str, count: int) -> None:
    """As a member of a group that leaves again."""
    consumer = Consumer({"bootstrap.servers": bootstrap_server, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    assert len(consumer.consume(count, PATIENCE_S)) == count
    consumer.commit(asynchronous=False)
    consumer.close()


def has_metrics(bootstrap_server: str) -> bool:
    """Whether these are brokers of Odradek."""
    requests = Cluster(bootstrap_server, {}).requests
    return all(serves_metrics(requests, each) for each in requests.describe().brokers.values())


def without_tags(page: str) -> str:
    return re.sub(r"<[^>]*>", "", page)


def test_the_overview_shows_brokers_counts_and_topics(visitor: Visitor, topic: str) -> None:
    visitor.get(f"/topics/{topic}")
    page = visitor.get("/")
    assert page.status == 200
    for words in ("All brokers run", "Under-replicated", "Offline", "Controller", "Records in"):
        assert words in page.text
    assert re.search(r'Controller</dt>\s*<dd class="figure">\d+</dd>\s*<dd class="faint">broker id<', page.source)
    assert "<html" not in visitor.get("/overview/panel", HX_Request="true").source


def test_the_overview_leaves_out_what_the_brokers_do_not_report(visitor: Visitor, bootstrap_server: str) -> None:
    is_odradek = has_metrics(bootstrap_server)
    page = visitor.get("/").source
    assert page.count("data-chart=") == (6 if is_odradek else 2)
    assert ('data-chart="produce_p99"' in page) == is_odradek


def test_a_topic_is_created_configured_grown_and_deleted(visitor: Visitor, new_name: Callable[[], str]) -> None:
    name = new_name()
    page = visitor.post("/new-topic", {"name": name, "partitions": "3", "settings": "retention.ms=3600000\n"})
    assert f"Created topic {name} with 3 partitions" in page.text
    assert name in visitor.get(f"/topics?q={name[2:8]}").text
    settings = visitor.get(f"/topics/{name}/settings?q=retention.ms").text
    assert 'value="3600000"' in settings
    assert "dynamic topic" in settings
    page = visitor.post(f"/topics/{name}/settings", {"setting": "cleanup.policy", "value": "compact"})
    assert "cleanup.policy = compact" in page.text
    page = visitor.post(f"/topics/{name}/settings", {"setting": "retention.ms", "reset": "1"})
    assert "retention.ms has its default value again" in page.text
    assert "now has 5 partitions" in visitor.post(f"/topics/{name}/partitions", {"partitions": "5"}).text
    refused = visitor.post(f"/topics/{name}/delete", {"confirmation": name[:-1]})
    assert refused.status == 422
    assert "nothing was deleted" in refused.text
    assert f"Deleted topic {name}" in visitor.post(f"/topics/{name}/delete", {"confirmation": name}).text
    assert visitor.get(f"/topics/{name}").status == 404


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "", "partitions": "1"}, "1 to 249 characters"),
        ({"name": "a/b"}, "a/b"),
        ({"name": "x", "partitions": "0"}, "between 1 and"),
        ({"name": "x", "partitions": "many"}, "not a whole number"),
        ({"name": "x", "settings": "retention"}, "not name=value"),
        ({"name": "x-console", "settings": "retention.mss=1"}, "retention.ms"),
    ],
)
def test_a_topic_that_cannot_be_created_says_why(visitor: Visitor, fields: dict[str, str], words: str) -> None:
    page = visitor.post("/new-topic", fields)
    assert page.status == 422
    assert words in page.text


def test_partitions_are_shown_with_their_offsets(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    produce(topic, "a", "b", "c", partition=1)
    page = visitor.post(f"/topics/{topic}/partitions", {"partitions": "3"})  # the console looks at the cluster again
    assert "3 records" in page.text
    assert "in sync" in page.text


def test_records_are_read_from_any_start(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    produce(topic, *(f"value-{number}" for number in range(10)), partition=0)
    newest = visitor.get(f"/topics/{topic}?limit=3").text
    assert [f"value-{n}" in newest for n in (6, 7, 8, 9)] == [False, True, True, True]
    assert newest.index("value-9") < newest.index("value-8")
    oldest = visitor.get(f"/topics/{topic}?start=oldest&limit=2").text
    assert [f"value-{n}" in oldest for n in (0, 1, 2)] == [True, True, False]
    at_offset = visitor.get(f"/topics/{topic}?start=offset&at=4&partition=0&limit=2").text
    assert [f"value-{n}" in at_offset for n in (3, 4, 5, 6)] == [False, True, True, False]
    assert "value-0" in visitor.get(f"/topics/{topic}?start=time&at=-1h").text
    assert "No records here" in visitor.get(f"/topics/{topic}?start=time&at=now").text
    assert f"odradek consume {topic}" in at_offset
    assert "--offset 4" in at_offset


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("start=offset&at=x", "not a whole number"),
        ("start=time&at=yesterday", "is not a time"),
        ("partition=99", "has no partition 99"),
        ("field=json&name=id&text=1", "is not a JSON path"),
        ("start=sideways", "is no start"),
        ("start=offset&at=500", "has no offset 500"),
    ],
)
def test_a_question_that_cannot_be_asked_says_why(visitor: Visitor, topic: str, query: str, words: str) -> None:
    page = visitor.get(f"/topics/{topic}?{query}")
    assert page.status == 422
    assert words in page.text


def test_records_are_shown_by_their_kind(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    produce(topic, ("k", json.dumps({"a": [1]})), ("k", b"\x00\xff\x01"), ("k", None), ("k", ""), partition=0)
    assert '"a": [\n    1' in without_tags(visitor.get(f"/topics/{topic}/record?partition=0&offset=0").text)
    assert 'class="cut is-empty"' in visitor.get(f"/topics/{topic}").source
    assert "000000  00 ff 01" in visitor.get(f"/topics/{topic}/record?partition=0&offset=1").text
    assert "null" in visitor.get(f"/topics/{topic}/record?partition=0&offset=2").text
    assert "7b 22 61" in visitor.get(f"/topics/{topic}/record?partition=0&offset=0&format=hex").text
    missing = visitor.get(f"/topics/{topic}/record?partition=0&offset=77")
    assert missing.status == 404
    assert "no record at offset 77" in missing.text


def test_a_search_goes_over_all_partitions_with_progress(
    visitor: Visitor, topic: str, produce: Callable[..., None]
) -> None:
    for partition in (0, 1):
        produce(topic, *(json.dumps({"n": n}) for n in range(300)), partition=partition)
    stream = visitor.get(f"/topics/{topic}/search?start=oldest&field=json&name=$.n&comparison=less&text=2").source
    last = json.loads(stream.strip().rpartition("data: ")[2])
    assert (last["seen"], last["total"], last["matched"], last["done"], last["failure"]) == (600, 600, 4, True, "")


def test_a_search_from_the_newest_goes_back_to_the_oldest(
    visitor: Visitor, topic: str, produce: Callable[..., None]
) -> None:
    produce(topic, *(f"n{number}" for number in range(6_000)), partition=0)
    stream = visitor.get(f"/topics/{topic}/search?field=value&comparison=contains&text=n").text
    last = json.loads(stream.strip().rpartition("data: ")[2])
    assert "stopped after 500 matches" in last["failure"]
    assert stream.index(">5999</a>") < stream.index(">5500</a>")  # offsets
    assert ">5499</a>" not in stream
    assert last["further"] == "?field=value&comparison=contains&text=n&start=before&at=0%3A5500"
    rest = visitor.get(f"/topics/{topic}/search{last['further']}").text
    assert ">5500</a>" not in rest
    assert ">5499</a>" in rest
    stream = visitor.get(f"/topics/{topic}/search?field=value&comparison=equals&text=n7").text
    last = json.loads(stream.strip().rpartition("data: ")[2])
    assert (last["seen"], last["matched"], last["failure"]) == (6_000, 1, "")


def test_an_export_has_a_line_for_each_record(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    produce(topic, *((f"k{n}", f"v{n}") for n in range(40)), headers=[("h", b"1")])
    answer = visitor.get(f"/topics/{topic}/export?start=oldest&field=value&text=v3")
    rows = [json.loads(line) for line in answer.body.splitlines()]
    assert sorted(row["value"] for row in rows) == sorted(["v3", *(f"v{n}" for n in range(30, 40))])
    assert rows[0]["headers"] == [{"key": "h", "value": "1"}]
    assert "attachment" in answer.headers["content-disposition"]


def test_a_record_is_written_and_replayed(visitor: Visitor, topic: str, new_name: Callable[[], str]) -> None:
    fields = {"key": "k", "value": "line 1\r\nline 2", "headers": "a=1\nb=2", "partition": "1"}
    page = visitor.post(f"/topics/{topic}", fields)
    assert "Wrote a record to partition 1 at offset 0" in page.text
    detail = visitor.get(f"/topics/{topic}/record?partition=1&offset=0").text
    assert "line 1\nline 2" in detail
    assert ">a</dt>" in detail
    target = new_name()
    visitor.post("/new-topic", {"name": target, "partitions": "1"})
    page = visitor.post(f"/topics/{topic}/replay", [("record", "1:0"), ("record", "1:5"), ("target", target)])
    assert f"Copied 1 record of {topic} to {target}" in page.text
    assert "line 1\nline 2" in visitor.get(f"/topics/{target}/record?partition=0&offset=0").text
    assert visitor.post(f"/topics/{topic}/replay", [("target", target)]).status == 422
    assert visitor.post(f"/topics/{topic}", {"value": "x", "headers": "no"}).status == 422


def test_a_group_is_described_reset_and_deleted(
    visitor: Visitor, bootstrap_server: str, topic: str, produce: Callable[..., None], new_name: Callable[[], str]
) -> None:
    group = f"{new_name()}/with slash & more"
    produce(topic, *"abcdef", partition=0)
    consume_and_commit(bootstrap_server, topic, group, 6)
    produce(topic, "g", "h", partition=0)
    listed = visitor.get(f"/groups?q={group[:8]}").text
    assert group in listed
    assert "Empty" in listed
    query = f"name={group.replace('/', '%2F').replace(' ', '+').replace('&', '%26')}"
    page = visitor.get(f"/group?{query}").text
    assert "records not yet read" in page
    preview = visitor.post(f"/group/reset/preview?{query}", {"way": "offset", "at": "2"})
    assert "4 records to be read again" in preview.text
    plan = [[topic, 0, 6, 2]]
    stale = visitor.post(f"/group/reset?{query}", {"plan": json.dumps([[topic, 0, 5, 2]])})
    assert stale.status == 422
    assert "since the preview" in stale.text
    assert "Reset 1 offset" in visitor.post(f"/group/reset?{query}", {"plan": json.dumps(plan)}).text
    assert group_names(Cluster(bootstrap_server, {}))
    assert visitor.post(f"/group/delete?{query}", {"confirmation": "other"}).status == 422
    assert "Deleted group" in visitor.post(f"/group/delete?{query}", {"confirmation": group}).text
    assert visitor.get(f"/group?{query}").status == 502


@pytest.mark.parametrize(
    ("way", "at", "words"), [("time", "x", "is not a time"), ("offset", "-1", "between"), ("", "", "choose")]
)
def test_a_reset_that_cannot_be_planned_says_why(visitor: Visitor, way: str, at: str, words: str) -> None:
    page = visitor.post("/group/reset/preview?name=some", {"way": way, "at": at})
    assert page.status == 422
    assert words in page.text


def test_brokers_that_report_metrics_are_shown_with_their_load(
    visitor: Visitor, bootstrap_server: str, topic: str, produce: Callable[..., None]
) -> None:
    is_odradek = has_metrics(bootstrap_server)
    page = visitor.get("/brokers").text
    for words in ("Bytes in/s", "Bytes out/s", "Requests/s", "Produce p99", "Connections"):
        assert (words in page) == is_odradek
    deadline = time.monotonic() + 60
    while is_odradek and not is_loaded(visitor.get("/brokers").text):
        assert time.monotonic() < deadline
        produce(topic, b"x" * 1000)


def is_loaded(page: str) -> bool:
    """Whether a broker has more than 100 bytes in and more than one request per second, a p99 and connections."""
    row = page.partition("Produce p99")[2].partition("</table>")[0]
    cells = re.findall(r'<td class="n">(.*?)</td>', row)
    return bool(re.match(r"\d{3} B|[\d.]+ KB", cells[0])) and all(cell[0] in "0123456789" for cell in cells[1:])


def test_brokers_are_shown_with_their_disks(visitor: Visitor, topic: str) -> None:
    page = visitor.get("/brokers").text
    assert "Log directories" in page
    assert "running" in page
    planned = visitor.post("/brokers/preview", {"topics": topic})
    assert "Nothing to move" in planned.text
    refused = visitor.post("/brokers/preview", {"topics": topic, "factor": "9"})
    assert refused.status == 422
    assert "needs 9 brokers" in refused.text
    assert visitor.post("/brokers/move", {"plan": "[]"}).status == 422
    assert "No partition is being moved" in visitor.post("/brokers/cancel", {}).text


def test_a_transaction_is_described_and_aborted(
    visitor: Visitor, bootstrap_server: str, topic: str, new_name: Callable[[], str]
) -> None:
    name = new_name()
    producer = Producer({"bootstrap.servers": bootstrap_server, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    assert name in visitor.get(f"/transactions?q={name}").text
    page = visitor.get(f"/transaction?id={name}").text
    assert "Ongoing" in page
    fields = {"topic": topic, "partition": "0", "start_offset": "0"}
    assert visitor.post(f"/transaction/abort?id={name}", {**fields, "confirmation": "x"}).status == 422
    page = visitor.post(f"/transaction/abort?id={name}", {**fields, "confirmation": name}).text
    assert f"Wrote an abort marker to {topic}-0" in page
    assert "No partition has an open transaction" in page


@pytest.mark.parametrize(("cookie", "has_theme"), [("dark", True), ("light", True), ("", False), ('"><b>', False)])
def test_the_page_comes_in_the_theme_that_was_chosen(visitor: Visitor, cookie: str, has_theme: bool) -> None:
    """No script has to run before the first paint."""
    visitor.cookies["odradek_theme"] = cookie
    page = visitor.get("/new-topic").source
    assert (f'<html lang="en" data-theme="{cookie}">' if has_theme else '<html lang="en">') in page
    assert not re.search(r"<script(?![^>]* defer)", page)


def test_a_page_that_does_not_exist_is_not_found(visitor: Visitor) -> None:
    assert visitor.get("/nowhere").status == 404
    assert visitor.get("/topics/no-such-topic").status == 404
    assert visitor.get("/assets/../settings.py").status == 404


def test_a_console_without_a_cluster_says_so() -> None:
    with running_console("127.0.0.1:1") as address:
        page = Visitor(address).get("/")
    assert page.status == 502
    assert "no broker answers at 127.0.0.1:1" in page.text
