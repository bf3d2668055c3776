"""The pages of a topic: what they say without records, without the topic, and without permissions; who reads it."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from odradek.console.records.record import Record, parse_filter
from odradek.console.views.pipelines import readers_of
from odradek.conventions.failures import Failure
from tests.console.conftest import Visitor, running_console
from tests.console.test_pages import consume_and_commit
from tests.console.test_pipelines import published

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def test_a_topic_opens_on_its_records(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    produce(topic, "shown at once", partition=0)
    page = visitor.get(f"/topics/{topic}").text
    assert "shown at once" in page
    assert f'<a href="/topics/{topic}" aria-current="page">Records</a>' in page
    assert "Next offset" in visitor.get(f"/topics/{topic}/partitions").text


def test_a_page_that_could_not_be_read_does_not_call_the_topic_empty(
    visitor: Visitor, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "The topic is empty" in visitor.get(f"/topics/{topic}").text
    assert "Partition 1 is empty" in visitor.get(f"/topics/{topic}?partition=1").text

    def fail(*_arguments: Any) -> None:
        raise Failure("without a leader, and not read: partition 0")

    monkeypatch.setattr("odradek.console.cluster.records.read_page", fail)
    page = visitor.get(f"/topics/{topic}")
    assert page.status == 422
    assert "without a leader" in page.text
    assert "Records were not read" in page.text
    assert "is empty" not in page.text


def test_a_refused_record_leaves_the_page_as_it_is(visitor: Visitor, topic: str) -> None:
    page = visitor.post(f"/topics/{topic}", {"value": "x", "headers": "no"})
    assert page.status == 422
    assert "The topic is empty" in page.text


def last_event(stream: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(stream.strip().rpartition("data: ")[2])
    return event


def test_a_search_without_a_match_says_what_it_has_searched(
    visitor: Visitor, topic: str, produce: Callable[..., None]
) -> None:
    produce(topic, "a", partition=0)
    empty = last_event(visitor.get(f"/topics/{topic}/search?text=none").source)["empty"]
    assert "Nothing found" in empty
    assert "1 record was searched." in empty
    assert "another text" in empty
    produce(topic, "b", partition=0)
    empty = last_event(visitor.get(f"/topics/{topic}/search?text=none&partition=0").source)["empty"]
    assert "2 records were searched, not the whole topic." in empty
    assert f'href="/topics/{topic}?text=none">Search the whole topic' in empty
    assert not last_event(visitor.get(f"/topics/{topic}/search?text=b").source)["empty"]


@pytest.mark.parametrize("field", ["any", "value", "key", "header"])
def test_a_search_finds_escaped_text(field: str) -> None:
    escaped = json.dumps({"name": "Größe", "list": ["a"]}).encode()
    assert b"\\u00f6" in escaped
    record = Record("t", 0, 0, 0, escaped, escaped, (("h", escaped),))
    for text in ("größe", "\\u00f6", '"name": "G'):
        assert parse_filter(field, "contains", text, "").matches(record), text
    without_spaces = escaped.replace(b": ", b":")
    compact = Record("t", 0, 0, 0, without_spaces, without_spaces, (("h", without_spaces),))
    assert parse_filter(field, "contains", '"name": "g', "").matches(compact)
    assert not parse_filter(field, "contains", "grösse", "").matches(record)
    assert not parse_filter(field, "contains", "größe", "").matches(Record("t", 0, 0, 0, None, b"\\u00f6"))


def test_a_search_passes_over_documents_that_cannot_be_shown() -> None:
    deep = b"[" * 900 + b'"\\u00fc"' + b"]" * 900
    for value in (deep, b"[" * 50_000 + b"\\", b'"\\ud800"'):
        parse_filter("any", "contains", "ü", "").matches(Record("t", 0, 0, 0, None, value))


def test_the_header_counts_what_the_console_has_written(bootstrap_server: str, topic: str) -> None:
    with running_console(bootstrap_server, sample_interval_s=600) as address:
        visitor = Visitor(address)
        assert "0 records" in visitor.get(f"/topics/{topic}").text
        assert '<span class="nowrap">1 record</span>' in visitor.post(f"/topics/{topic}", {"value": "x"}).source
        fields = [("record", f"{partition}:0") for partition in (0, 1)]
        page = visitor.post(f"/topics/{topic}/replay", [*fields, ("target", topic)])
        assert '<span class="nowrap">2 records</span>' in page.source


def test_an_unknown_topic_leads_to_similar_ones_and_to_its_creation(visitor: Visitor, topic: str) -> None:
    visitor.get(f"/topics/{topic}")
    missing = visitor.get(f"/topics/{topic}x")
    assert missing.status == 404
    assert f"There is no topic {topic}x." in missing.text
    assert f'Did you mean <a href="/topics/{topic}">{topic}</a>' in missing.text
    assert f'href="/new-topic?name={topic}x"' in missing.text
    assert f'name="name" value="{topic}x"' in visitor.get(f"/new-topic?name={topic}x").text
    assert "/new-topic?name" not in visitor.get("/topics/no%20name").text


@pytest.mark.parametrize("name", ["%FF", "no%20name", "a" * 250])
def test_a_name_that_no_topic_can_have_is_not_found(visitor: Visitor, name: str) -> None:
    for page in ("", "/partitions", "/settings", "/groups", "/record?partition=0&offset=0", "/search?text=x"):
        answer = visitor.get(f"/topics/{name}{page}")
        assert answer.status == 404, page
        assert "There is no topic " in answer.text
        assert "All topics" in answer.text


def test_the_groups_of_a_topic_are_shown_with_their_lag(
    visitor: Visitor, bootstrap_server: str, topic: str, produce: Callable[..., None], new_name: Callable[[], str]
) -> None:
    group = f"{new_name()} & more"
    assert "No group reads this topic" in visitor.get(f"/topics/{topic}/groups").text
    produce(topic, *"abcdef", partition=0)
    consume_and_commit(bootstrap_server, topic, group, 6)
    produce(topic, "g", "h", partition=0)
    page = visitor.get(f"/topics/{topic}/groups").text
    assert f'<a href="/group?name={group.replace(" ", "+").replace("&", "%26")}">{group}</a>' in page
    assert [cell.strip() for cell in re.findall(r'<td class="n">([^<]*)<', page)] == ["0", "1 of 2", "2"]


def test_pipelines_that_read_a_topic_are_shown() -> None:
    class Known:
        published = published("reader", time.time(), 1)

    known: Any = [Known]
    source = next(node for node in Known.published.nodes if node.kind == "source").topics[0]
    assert readers_of(known, source) == known
    assert readers_of(known, "another") == []


def test_rules_are_not_added_where_there_are_none(visitor: Visitor) -> None:
    page = visitor.get("/access/rules").text
    assert "set authorizer.class.name" in page
    assert "Add rules" not in page
