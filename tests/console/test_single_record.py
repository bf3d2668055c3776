"""One record: its own address, the records before and after it in its partition, and copies of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from odradek.console.records.masking import HIDDEN, DecodeAndMask, parse_rule
from odradek.console.views.records import RecordAddress
from tests.console.conftest import Visitor, running_console

if TYPE_CHECKING:
    from collections.abc import Callable

BINARY = b"\x00\xff\x01"


def test_an_address_names_topic_partition_offset_and_format() -> None:
    at = RecordAddress("a.b", 2, 17)
    assert at.address() == "/topics/a.b/record?partition=2&offset=17"
    assert at._replace(form="hex").address("/next") == "/topics/a.b/record/next?partition=2&offset=17&format=hex"


def follow(visitor: Visitor, path: str) -> tuple[str, str]:
    """The address that a step leads to, and its page."""
    answer = visitor.get(path)
    assert answer.status == 303
    return answer.headers["location"], visitor.get(answer.headers["location"]).text


def test_a_record_leads_to_those_before_and_after_it(
    visitor: Visitor, topic: str, produce: Callable[..., None]
) -> None:
    produce(topic, "first", "second", "third", partition=1)
    record = f"/topics/{topic}/record"
    page = visitor.get(f"{record}?partition=1&offset=1&format=text")
    assert "second" in page.text
    steps = re.findall(r'href="([^"]+)" rel="(\w+)"', page.text)
    assert [name for _path, name in steps] == ["prev", "next"]
    location, previous = follow(visitor, steps[0][0])
    assert location == f"{record}?partition=1&offset=0&format=text"
    assert "first" in previous
    location, following = follow(visitor, steps[1][0])
    assert location == f"{record}?partition=1&offset=2&format=text"
    assert "third" in following
    location, last = follow(visitor, f"{record}/next?partition=1&offset=2")
    assert location == f"{record}?partition=1&offset=2"
    assert "There is no record after offset 2 of partition 1." in last
    assert "There is no record before offset 0" in follow(visitor, f"{record}/previous?partition=1&offset=0")[1]
    drawer = visitor.get(visitor.get(f"{record}/next?partition=1&offset=2").headers["location"], HX_Request="true")
    assert "<html" not in drawer.source
    assert "There is no record after offset 2" in drawer.text


def test_a_record_is_downloaded_as_it_is(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    long = json.dumps({"text": "ü" * 250_000}, ensure_ascii=False)
    produce(topic, ("k", long), (None, BINARY), partition=0, headers=[("h", b"1")])
    record = f"/topics/{topic}/record"
    value = visitor.get(f"{record}/value?partition=0&offset=0")
    assert value.body == long.encode()
    assert value.headers["content-disposition"] == f'attachment; filename="{topic}-0-0.value"'
    assert value.headers["content-type"] == "application/octet-stream"
    assert visitor.get(f"{record}/key?partition=0&offset=0").body == b"k"
    assert visitor.get(f"{record}/value?partition=0&offset=1").body == BINARY
    fields = json.loads(visitor.get(f"{record}/json?partition=0&offset=0").body)
    assert (fields["topic"], fields["offset"], fields["value"]) == (topic, 0, long)
    assert fields["headers"] == [{"key": "h", "value": "1"}]
    assert visitor.get(f"{record}/nothing?partition=0&offset=0").status == 404


def test_bytes_are_copied_as_they_are_shown(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    produce(topic, ("k", BINARY), (None, None), partition=0)
    page = visitor.get(f"/topics/{topic}/record?partition=0&offset=0").text
    assert 'data-copy="record-value"' in page
    assert f'data-copy-from="/topics/{topic}/record/key?partition=0&offset=0"' in page
    null = visitor.get(f"/topics/{topic}/record?partition=0&offset=1").text
    assert "Copy the" not in null


def test_what_is_masked_is_not_downloaded(bootstrap_server: str, topic: str, produce: Callable[..., None]) -> None:
    produce(topic, ("secret", '{"pin": "secret"}'), partition=0)
    decode_and_mask = DecodeAndMask((parse_rule("key"), parse_rule("$.pin")))
    with running_console(bootstrap_server, decode_and_mask=decode_and_mask) as address:
        visitor = Visitor(address)
        for part in ("key", "value", "json"):
            answer = visitor.get(f"/topics/{topic}/record/{part}?partition=0&offset=0")
            assert answer.status == 200
            assert "secret" not in answer.source
            assert HIDDEN in answer.source


@pytest.mark.parametrize("query", ["", "partition=0", "partition=x&offset=0", "partition=0&offset=-1"])
def test_a_record_without_an_address_is_refused(visitor: Visitor, topic: str, query: str) -> None:
    for path in ("record", "record/next", "record/json"):
        assert visitor.get(f"/topics/{topic}/{path}?{query}").status == 400
