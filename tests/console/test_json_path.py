"""Paths into JSON values: a path leads to each element once, however many ways lead there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from odradek.console.records.json_path import Location, locations, parse_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.console.records.json_path import Step


def nested(depth: int) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for _ in range(depth):
        document = {"a": document}
    return document


def test_a_record_that_is_nested_deeply_has_no_more_locations_than_elements() -> None:
    """Any producer can place such a record; `$..a..a..a` has 1.2 * 10**8 chains in one of depth 900."""
    assert len(locations(nested(900), parse_path("$..a..a..a"))) == 898
    assert len(locations(nested(900), parse_path("$" + "..a" * 32))) == 869


def test_values_that_several_lists_share_are_found_once_each() -> None:
    document = {"a": [{"a": {"b": 1}}, {"b": 2}], "b": 3}
    assert sorted(found.value for found in locations(document, parse_path("$..a..b"))) == [1, 2]


documents = st.recursive(
    st.integers(0, 3),
    lambda inner: st.dictionaries(st.sampled_from("ab"), inner, max_size=2) | st.lists(inner, max_size=2),
    max_leaves=12,
)
paths = st.lists(st.sampled_from(["..a", "..b", ".a", ".*", "[0]", "[*]"]), max_size=4).map(
    lambda parts: "$" + "".join(parts)
)


@given(documents, paths)
def test_the_elements_are_those_of_all_chains(document: Any, path: str) -> None:
    steps = parse_path(path)
    root = [document]
    found = [Location(root, 0)]
    for step in steps:
        found = [inner for each in found for inner in _chains(each.value, step)]
    expected = {(id(each.container), each.key) for each in found if each.container is not root}
    reported = [(id(each.container), each.key) for each in locations(document, steps)]
    assert len(set(reported)) == len(reported)
    if steps:
        assert set(reported) == expected


def _chains(value: Any, step: Step) -> Iterator[Location]:
    """Every chain of elements, straight from the definition."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        if step.key is None or (key == step.key and (not step.is_anywhere or isinstance(value, dict))):
            yield Location(value, key)
        if step.is_anywhere:
            yield from _chains(inner, step)
