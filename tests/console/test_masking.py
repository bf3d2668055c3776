"""Masked fields are hidden wherever a record is shown, found or exported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.console.json_path import PathError, locations, parse_path
from odradek.console.masking import HIDDEN, mask, parse_rule
from odradek.console.preparation import Preparation
from odradek.console.record import Record
from odradek.console.record_filter import parse_filter
from tests.console.conftest import Visitor, running_console

if TYPE_CHECKING:
    from collections.abc import Callable

ORDER = {"id": 7, "card": {"number": "4111", "expires": "12/29"}, "items": [{"sku": "a", "password": "p1"}]}


def record(value: object, key: bytes | None = b"k", headers: tuple[tuple[str, bytes | None], ...] = ()) -> Record:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Record("orders", 0, 5, 1_000, key, data, headers)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [ORDER]),
        ("$.id", [7]),
        ("$.card.number", ["4111"]),
        ("$['card'].expires", ["12/29"]),
        ("$.items[0].sku", ["a"]),
        ("$.items[*].password", ["p1"]),
        ("$..password", ["p1"]),
        ("$.items[9]", []),
        ("$.id.nothing", []),
        ("$.card.*", ["4111", "12/29"]),
    ],
)
def test_a_path_leads_to_values(path: str, found: list[object]) -> None:
    assert [place.value for place in locations(ORDER, parse_path(path))] == found


@pytest.mark.parametrize("path", ["", "id", "$id", "$.", "$[", "$.a[x]", "$" + ".a" * 40])
def test_what_is_not_a_path_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        parse_path(path)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        (b'does not fit the schema: {"card": {"number": "4111", "x": 1}', b"does not fit the schema"),
        (b"not JSON: 4111", b"not JSON"),
        (b"no value", b"no value"),
        (b"4111\xff", b"4111\xff"),
        (None, None),
    ],
)
def test_the_reason_of_a_dead_letter_is_reduced_to_its_kind(reason: bytes | None, shown: bytes | None) -> None:
    """Its details are an excerpt of the value. A record that is written back and rejected again has two of them."""
    letter = record(ORDER, headers=(("odradek-reason", reason), ("odradek-step", b"a: b"), ("odradek-reason", reason)))
    masked = mask(letter, [parse_rule("$.card.number")])
    assert masked.headers == (("odradek-reason", shown), ("odradek-step", b"a: b"), ("odradek-reason", shown))
    assert mask(letter, [parse_rule("key")]).headers == letter.headers
    hidden = mask(letter, [parse_rule("$.card.number"), parse_rule("header:odradek-reason")])
    assert hidden.headers[0] == ("odradek-reason", HIDDEN.encode())


def test_fields_keys_and_headers_are_hidden() -> None:
    rules = [parse_rule(text) for text in ("$.card.number", "$..password", "key", "header:token")]
    masked = mask(record(ORDER, headers=(("token", b"s3cret"), ("trace", b"1"))), rules)
    shown = json.loads(masked.value or b"")
    assert shown["card"] == {"number": HIDDEN, "expires": "12/29"}
    assert shown["items"] == [{"sku": "a", "password": HIDDEN}]
    assert (masked.key or b"").decode() == HIDDEN
    assert masked.headers == (("token", HIDDEN.encode()), ("trace", b"1"))


@pytest.mark.parametrize(
    "value", [b"4111 in text", b'{"card": {"number": "4111"', b"\xff4111", b'{"a":' * 9000 + b"4111"]
)
def test_a_value_that_is_not_json_is_hidden_as_a_whole(value: bytes) -> None:
    masked = mask(record(value), [parse_rule("$.card.number")])
    assert b"4111" not in (masked.value or b"")


def test_the_last_of_equal_names_does_not_uncover_the_first() -> None:
    masked = mask(record(b'{"pin": "4111", "pin": "4111"}'), [parse_rule("$.pin")])
    assert b"4111" not in (masked.value or b"")


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["pin", "a", "b"]), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_no_value_under_a_masked_name_is_left(document: object) -> None:
    masked = mask(record(document), [parse_rule("$..pin")])
    shown = json.loads(masked.value or b"null")
    assert all(place.value == HIDDEN for place in locations(shown, parse_path("$..pin")))


@pytest.mark.parametrize("rule", ["", "value", "header:", "card.number"])
def test_what_is_not_a_rule_is_refused(rule: str) -> None:
    with pytest.raises(PathError):
        parse_rule(rule)


@pytest.mark.parametrize(
    ("given_filter", "is_found"),
    [
        (("any", "contains", "SKU", ""), True),
        (("key", "equals", "k", ""), True),
        (("key", "equals", "other", ""), False),
        (("value", "contains", "4111", ""), True),
        (("header", "contains", "abc", "trace"), True),
        (("header", "contains", "abc", "other"), False),
        (("header", "exists", "", "trace"), True),
        (("json", "equals", "7", "$.id"), True),
        (("json", "greater", "6.5", "$.id"), True),
        (("json", "less", "6.5", "$.id"), False),
        (("json", "less", "many", "$.id"), False),
        (("json", "exists", "", "$.card"), True),
        (("json", "exists", "", "$.nothing"), False),
        (("json", "differs", "8", "$.id"), True),
        (("json", "differs", "8", "$.nothing"), False),
        (("any", "differs", "other", ""), True),
        (("any", "differs", "k", ""), False),
        (("header", "differs", "abc", ""), False),
    ],
)
def test_a_filter_compares_a_field(given_filter: tuple[str, str, str, str], is_found: bool) -> None:
    found = record(ORDER, headers=(("trace", b"abc"),))
    assert parse_filter(*given_filter).matches(found) is is_found


def test_masks_hold_on_the_page_in_search_and_in_the_export(
    bootstrap_server: str, topic: str, produce: Callable[..., None]
) -> None:
    produce(topic, json.dumps(ORDER), partition=0)
    with running_console(bootstrap_server, preparation=Preparation((parse_rule("$.card.number"),))) as address:
        visitor = Visitor(address)
        page = visitor.get(f"/topics/{topic}/messages")
        assert "12/29" in page.text
        detail = visitor.get(f"/topics/{topic}/record?partition=0&offset=0")
        export = visitor.get(f"/topics/{topic}/export?start=oldest")
        by_secret = visitor.get(f"/topics/{topic}/search?start=oldest&text=4111")
        by_other = visitor.get(f"/topics/{topic}/search?start=oldest&text=12/29")
    for answer in (page, detail, export, by_other):
        assert "4111" not in answer.source
    assert json.loads(json.loads(export.body)["value"])["card"]["number"] == HIDDEN
    assert '"matched":0' in by_secret.source
    assert '"matched":1' in by_other.source
