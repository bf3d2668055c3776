"""Expressions of SQL, each with its meaning in Python: what the definitions that are drawn compute and check."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    Values = dict[str, Any]

# A column of a name has this type in all tables.
TYPES = {
    "id": "BIGINT", "k": "STRING", "n": "BIGINT", "d": "DOUBLE", "t": "STRING", "tags": "ARRAY<STRING>",
    "at": "TIMESTAMP", "seen": "TIMESTAMP", "moment": "TIMESTAMP", "name": "STRING", "tag": "STRING", "pos": "INT",
    "label": "STRING", "labels_known": "BIGINT", "x": "BIGINT", "y": "BIGINT", "text": "STRING", "number": "BIGINT",
    "page": "STRING", "share": "BIGINT", "large": "BIGINT", "part": "INT", "from_topic": "STRING", "i": "BIGINT",
    "other": "BIGINT", "other_n": "BIGINT", "other_at": "TIMESTAMP", "parity": "BIGINT", "events": "BIGINT",
    "total": "BIGINT", "top": "BIGINT", "low": "BIGINT", "kinds": "BIGINT", "ids": "ARRAY<BIGINT>", "many": "INT",
    "last": "BIGINT", "positive": "BIGINT", "peak": "DOUBLE", "window_start": "TIMESTAMP",
    "window_end": "TIMESTAMP", "until": "TIMESTAMP", "valid_from": "TIMESTAMP", "valid_to": "TIMESTAMP",
    "is_current": "BOOLEAN",
}  # fmt: skip
SMALLEST, LARGEST = -(2**63), 2**63 - 1


class CannotCompute(Exception):
    """An expression fails for a row."""


@dataclass(frozen=True, slots=True)
class Expression:
    """SQL over the named columns, and its value for a row. A condition is true, or not: null is not."""

    sql: str
    uses: tuple[str, ...]
    value: Callable[[Values], Any]
    name: str = ""
    fails: bool = False  # for some rows

    def fits(self, columns: Collection[str]) -> bool:
        return set(self.uses) <= set(columns)


def element(values: Values) -> Any:
    tags = values["tags"]
    if tags is not None and len(tags) < 2:
        raise CannotCompute
    return None if tags is None else tags[1]


def number(values: Values) -> int | None:
    text = values["t"]
    if text is None:
        return None
    if not text.strip().isdigit():
        raise CannotCompute
    return int(text)


def share(values: Values) -> int | None:
    n = values["n"]
    if n == 0:
        raise CannotCompute
    return None if n is None else int(100 / n)


def large(values: Values) -> int | None:
    n = values["n"]
    if n is not None and not SMALLEST <= n * 2**61 <= LARGEST:
        raise CannotCompute
    return None if n is None else n * 2**61


def known(*names: str) -> Callable[[Callable[..., Any]], Callable[[Values], Any]]:
    """A function of the named values, or null if one of them is."""

    def of_values(function: Callable[..., Any]) -> Callable[[Values], Any]:
        def value(values: Values) -> Any:
            found = [values[name] for name in names]
            return None if any(each is None for each in found) else function(*found)

        return value

    return of_values


CONDITIONS = (
    Expression("n > 3", ("n",), known("n")(lambda n: n > 3)),
    Expression("n % 2 = 0", ("n",), known("n")(lambda n: n % 2 == 0)),
    Expression("n between 0 and 6", ("n",), known("n")(lambda n: 0 <= n <= 6)),
    Expression("n is not null", ("n",), lambda values: values["n"] is not None),
    Expression("coalesce(n, 0) < 7", ("n",), lambda values: (values["n"] or 0) < 7),
    Expression("k <> 'b'", ("k",), known("k")(lambda k: k != "b")),
    Expression("k is not null", ("k",), lambda values: values["k"] is not None),
    Expression("k like 'a%' or n > 1", ("k", "n"), lambda values: values["k"] == "a" or (values["n"] or 0) > 1),
    Expression("id % 3 <> 0", ("id",), known("id")(lambda one: one % 3 != 0)),
    Expression("d >= 0", ("d",), known("d")(lambda d: d >= 0 or math.isnan(d))),
    Expression("array_contains(tags, 'x')", ("tags",), known("tags")(lambda tags: "x" in tags)),
    Expression("exists(tags, g -> g = 'y')", ("tags",), known("tags")(lambda tags: "y" in tags)),
    Expression("seen > timestamp '2000-01-01 00:00:00'", ("seen",), known("seen")(lambda seen: seen.year >= 2000)),
    Expression("events > 1", ("events",), known("events")(lambda events: events > 1)),
    Expression("events < 3", ("events",), known("events")(lambda events: events < 3)),
    Expression("i <= 2", ("i",), known("i")(lambda i: i <= 2)),
)
RARELY_UNMET = (  # of expectations that stop the pipeline
    Expression("id < 7", ("id",), known("id")(lambda one: one < 7)),
    Expression("id <> 3", ("id",), known("id")(lambda one: one != 3)),
)
COMPUTED = (
    Expression("coalesce(n, 0) + 1", ("n",), lambda values: (values["n"] or 0) + 1, "x"),
    Expression("n * 2", ("n",), known("n")(lambda n: n * 2), "x"),
    Expression("x * 2", ("x",), known("x")(lambda x: x * 2), "y"),
    Expression("concat(k, '-', id)", ("k", "id"), known("k", "id")(lambda k, one: f"{k}-{one}"), "text"),
    Expression("upper(k)", ("k",), known("k")(str.upper), "text"),
    Expression("coalesce(k, 'none')", ("k",), lambda values: values["k"] or "none", "text"),
    Expression("events * 10", ("events",), known("events")(lambda events: events * 10), "x"),
    Expression("tags[1]", ("tags",), element, "page", fails=True),
    Expression("cast(t as bigint)", ("t",), number, "number", fails=True),
    Expression("100 div n", ("n",), share, "share", fails=True),
    Expression("n * 2305843009213693952", ("n",), large, "large", fails=True),
)
OF_RECORD = (
    Expression("_partition", (), lambda values: values["_partition"], "part"),
    Expression("_topic", (), lambda values: values["_topic"], "from_topic"),
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate in SQL, and its value for the rows of a group."""

    name: str
    sql: str
    uses: tuple[str, ...]
    value: Callable[[Sequence[Values]], Any]

    def fits(self, columns: Collection[str]) -> bool:
        return set(self.uses) <= set(columns)


def of_column(name: str, function: Callable[[list[Any]], Any]) -> Callable[[Sequence[Values]], Any]:
    """An aggregate of the values of a column that are not null; null without any."""

    def value(rows: Sequence[Values]) -> Any:
        found = [row[name] for row in rows if row[name] is not None]
        return function(found) if found else None

    return value


def greatest_by(time: str) -> Callable[[Sequence[Values]], Any]:
    def value(rows: Sequence[Values]) -> Any:
        found = [(row[time], row["id"]) for row in rows if row[time] is not None]
        return max(found)[1] if found else None

    return value


def greatest_double(found: list[float]) -> float:
    return math.nan if any(map(math.isnan, found)) else max(found)


COUNT = Aggregate("events", "count(*)", (), len)
AGGREGATES = (
    Aggregate("total", "sum(n)", ("n",), of_column("n", sum)),
    Aggregate("top", "max(n)", ("n",), of_column("n", max)),
    Aggregate("low", "min(id)", ("id",), of_column("id", min)),
    Aggregate("kinds", "count(distinct n)", ("n",), lambda rows: len({row["n"] for row in rows} - {None})),
    Aggregate(
        "ids",
        "sort_array(collect_list(id))",
        ("id",),
        lambda rows: sorted(row["id"] for row in rows if row["id"] is not None),
    ),
    Aggregate("many", "size(collect_set(n))", ("n",), lambda rows: len({row["n"] for row in rows} - {None})),
    Aggregate("last", "max_by(id, at)", ("id", "at"), greatest_by("at")),
    Aggregate("last", "max_by(id, seen)", ("id", "seen"), greatest_by("seen")),
    Aggregate(
        "positive", "count(*) filter (where n > 0)", ("n",), lambda rows: sum((row["n"] or 0) > 0 for row in rows)
    ),
    Aggregate("peak", "max(d)", ("d",), of_column("d", greatest_double)),
)
OF_GROUPS = (  # over rows that are groups
    Aggregate("total", "sum(events)", ("events",), of_column("events", sum)),
    Aggregate("top", "max(events)", ("events",), of_column("events", max)),
)
HAVING = (  # conditions in SQL over aggregates, and over the row of the group
    Expression("count(*) >= 2", (), lambda values: values["events"] >= 2),
    Expression("count(*) < 3", (), lambda values: values["events"] < 3),
)
OF_ALIAS = Expression("events > 1", (), lambda values: values["events"] > 1)
KEYS = (  # expressions of GROUP BY
    Expression("coalesce(n, 0) % 2", ("n",), lambda values: math.fmod(values["n"] or 0, 2).__int__(), "parity"),
    Expression("coalesce(k, 'none')", ("k",), lambda values: values["k"] or "none", "name"),
    Expression("d", ("d",), lambda values: values["d"], "d"),
)
