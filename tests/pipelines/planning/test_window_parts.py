"""Texts and numbers of times tell windows shorter than a second apart if they have enough digits."""

from __future__ import annotations

import pytest

from tests.pipelines.planning.test_group_columns import refusals

SECONDS = "date_format(window.start, 'yyyy-MM-dd HH:mm:ss')"


@pytest.mark.parametrize(
    ("key", "length", "is_refused"),
    [
        (SECONDS, "1 minute 1.5 seconds", False),
        (SECONDS, "500 milliseconds", True),
        (SECONDS, "1 minute', '0.5 seconds", True),
        (SECONDS.replace("ss", "ss.SSS"), "500 milliseconds", False),
        (SECONDS.replace("ss", "ss.SSS"), "500 microseconds", True),
        (SECONDS.replace("ss", "ss.SSSSSS"), "500 microseconds", False),
        ("cast(window.start as string)", "500 microseconds", False),
        ("date_trunc('second', window.start)", "500 milliseconds", True),
        ("unix_timestamp(window.start)", "500 milliseconds", True),
        ("cast(window.start as bigint)", "500 milliseconds", True),
        ("cast(window.start as bigint)", "1 second", False),
        ("unix_millis(window.start)", "500 milliseconds", False),
    ],
)
def test_a_key_tells_windows_shorter_than_a_second_apart(key: str, length: str, is_refused: bool) -> None:
    query = f"select {key} as k, id, count(*) n from a group by window(at, '{length}'), id"
    refused = refusals("key: [k, id]", query)
    assert ["tells window apart" in line for line in refused] == [True] * is_refused, refused


@pytest.mark.parametrize("key", ["date_format(at, 'yyyy-MM-dd HH:mm:ss')", "unix_seconds(at)"])
def test_seconds_do_not_tell_times_apart_unless_these_are_seconds(key: str) -> None:
    (refused,) = refusals("key: [k]", f"select {key} as k, count(*) n from a group by at")
    assert "tells at apart" in refused
    seconds = "(select date_trunc('second', at) as at from a)"
    assert refusals("key: [k]", f"select {key} as k, count(*) n from {seconds} group by at") == []


def test_a_name_in_group_by_is_a_column_of_the_input_before_an_alias() -> None:
    query = "select s.at as s, count(*) n from (select struct(at, id) as s from a) group by s"
    (refused,) = refusals("key: [s]", query)
    assert "tells s apart" in refused
    assert refusals("key: [v]", "select v.id as v, count(*) n from (select id from a) v group by v") == []
