"""Outer joins of streams in SQL say that what they compare is not null."""

from __future__ import annotations

import pytest

from odradek.pipelines.planning.null_guards import with_null_guards


@pytest.mark.parametrize(
    ("head", "condition", "names"),
    [
        ("from a left join b on", "a.id = b.id and b.at between a.at and a.at + interval 1 minute",
         ["a.id", "b.id", "b.at", "a.at"]),
        ("from a -- on\n full join (select at as `a t` from b) c ON", "(a.at - interval 1 s) > c.`a t`",
         ["a.at", "c.`a t`"]),
        ("from (select b.at from b join t on t.id = b.id) a right join b c on", "a.at <= c.at", ["a.at", "c.at"]),
        ("from a left join b on", "(cast(a.at as date) = b.day and b.at >= (interval 1 day + a.at))",
         ["a.at", "b.day", "b.at"]),
        ("from a left join b on", "a.id = b.id and (b.at >= a.at and b.at <= a.at + interval 5 minutes)",
         ["a.id", "b.id", "b.at", "a.at"]),
        ("from a full join b on", "((a.id = b.id and (b.at > a.at and (b.at < a.end)))) and (a.x = b.y or a.z = b.z)",
         ["a.id", "b.id", "b.at", "a.at", "a.end"]),
        ("from a join b on", "a.id = b.id", []),
        ("from a left join t on", "a.id = t.id", []),
        ("from a left join b", "using (id, at)", []),
        ("from a left join b on", "a.id = b.id or a.at = b.at", []),
        ("from a left join b on", "a.id <=> b.id and coalesce(a.at, b.at) = 3", []),
    ],
)  # fmt: skip
def test_columns_that_an_outer_join_of_streams_compares_are_not_null(
    head: str, condition: str, names: list[str]
) -> None:
    guard = "".join(f" {name} IS NOT NULL AND" for name in names)
    found = with_null_guards(f"select 'on' as x {head} {condition}", ["a", "b"])
    assert found == f"select 'on' as x {head}{guard} {condition}"
