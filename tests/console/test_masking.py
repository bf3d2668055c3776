"""Masked fields are hidden wherever a record is shown, found or exported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.console.records.json_path import PathError, locations, parse_path
from odradek.console.records.masking import HIDDEN, DecodeAndMask, mask, parse_rule
from odradek.console.records.record import Record, parse_filter
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


@pytest.mark.parametrize("rule", ["$.card.number", "$..password", "$[0].number", "$.*"])
@pytest.mark.parametrize("value", [4111, 4111.5, "4111", '{"card": {"number": "4111"}, "password": "4111"}'])
def test_a_json_value_without_fields_is_hidden_as_a_whole(rule: str, value: object) -> None:
    assert mask(record(value), [parse_rule(rule)]).value == json.dumps(HIDDEN, ensure_ascii=False).encode()
    assert mask(record(None), [parse_rule(rule)]).value == b"null"


@pytest.mark.parametrize(
    ("rule", "document", "shown"),
    [
        ("$.card.number", {"card": '{"number": "4111"}', "id": 7}, {"card": HIDDEN, "id": 7}),
        ("$.card.number", {"card": "4111", "id": 7}, {"card": HIDDEN, "id": 7}),
        ("$.card.number", {"card": [{"number": "4111"}], "id": 7}, {"card": HIDDEN, "id": 7}),
        ("$.card.number", {"card": None}, {"card": None}),
        ("$.card.number", [{"card": {"number": "4111"}}], HIDDEN),
        ("$[0].pin", {"pin": "4111"}, HIDDEN),
        ("$.items[*].pin", {"items": [{"pin": 4111, "n": 1}, 4111]}, {"items": [{"pin": HIDDEN, "n": 1}, HIDDEN]}),
        ("$..pin", {"body": '{"user": {"pin": 4111}}', "id": "7"}, {"body": HIDDEN, "id": "7"}),
        ("$..pin", {"body": json.dumps(json.dumps({"pin": 4111}))}, {"body": HIDDEN}),
        ("$..pin", {"body": json.dumps({"inner": json.dumps([{"pin": 4111}])})}, {"body": HIDDEN}),
        ("$..pin", {"body": '{"p\\u0069n": 4111}'}, {"body": HIDDEN}),
        ("$..pin", {"body": ' {"pin": "41111", "cu'}, {"body": HIDDEN}),
        ("$.user..pin", {"user": '{"pin": 4111}'}, {"user": HIDDEN}),
        ("$..pin", {"body": '{"id": 7}', "line": "[12:01] done"}, {"body": '{"id": 7}', "line": "[12:01] done"}),
        ("$..card.pin", {"a": {"card": "4111"}}, {"a": {"card": HIDDEN}}),
    ],
)
def test_what_a_path_may_miss_is_hidden(rule: str, document: object, shown: object) -> None:
    assert json.loads(mask(record(document), [parse_rule(rule)]).value or b"") == shown


def test_names_of_headers_are_compared_without_case() -> None:
    headers = (("Authorization", b"4111"), ("AUTHORIZATION", b"4111"), ("trace", b"1"))
    masked = mask(record(ORDER, headers=headers), [parse_rule("header:authorization")])
    assert [value for _name, value in masked.headers] == [HIDDEN.encode(), HIDDEN.encode(), b"1"]


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


SECRETS: list[object] = [
    {**ORDER, "note": "shown"},
    41117,
    "41117",
    json.dumps({"card": {"number": "41117"}}),
    {"card": '{"number": "41117"}'},
    {"body": '{"password": "41117"}'},
]
DEAD_HEADERS: list[tuple[str, str | bytes | None]] = [
    ("odradek-reason", b"not JSON: 41117"),
    ("odradek-pipeline", b"p"),
    ("odradek-step", b"orders"),
    ("odradek-id", b"1"),
    ("Api-Key", b"41117"),
]


def test_masks_hold_on_pages_in_search_export_live_tail_and_dead_letters(
    bootstrap_server: str, topic: str, produce: Callable[..., None]
) -> None:
    records = [(f"41117-{number}", json.dumps(value)) for number, value in enumerate(SECRETS)]
    produce(topic, *records, partition=0, headers=DEAD_HEADERS)
    rules = tuple(map(parse_rule, ("$.card.number", "$..password", "header:api-key", "key")))
    with running_console(bootstrap_server, decode_and_mask=DecodeAndMask(rules)) as address:
        visitor = Visitor(address)
        messages = f"/topics/{topic}"
        answers = [
            visitor.get(messages),
            *(visitor.get(f"{messages}/record?partition=0&offset={offset}") for offset in range(len(SECRETS))),
            visitor.get(f"{messages}/export?start=oldest"),
            visitor.get(f"{messages}/search?start=oldest&text=o"),
            visitor.get(f"/dead-letters?topic={topic}"),
        ]
        by_secret = visitor.get(f"{messages}/search?start=oldest&text=4111")
        by_other = visitor.get(f"{messages}/search?start=oldest&text=12/29")
        tailed = ""
        with urlopen(f"{address[:-1]}{messages}/tail", timeout=60) as events:
            while "12/29" not in tailed:  # the tail may begin after the first records
                produce(topic, *records, partition=0, headers=DEAD_HEADERS)
                tailed += next(line for line in events if line.startswith(b"data:")).decode()
    for answer in answers:
        assert answer.status == 200
        assert HIDDEN in answer.text or "\\u2022" in answer.source
        assert "4111" not in answer.source
    assert "4111" not in tailed
    assert '"matched":0' in by_secret.source
    assert '"matched":1' in by_other.source
