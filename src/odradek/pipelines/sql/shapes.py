"""What a query over streams is: row by row, groups of one stream, a join of two streams, or static tables alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.pipelines.sql.columns import Columns
    from odradek.pipelines.sql.query import Call, Join, Query, TableRead, WindowCall
    from odradek.pipelines.sql.text import Span


@dataclass(frozen=True, slots=True)
class InputFacts:
    """What is known of a table that a query reads."""

    is_stream: bool
    event_time: str | None = None
    columns: Columns | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Row by row: projections, filters and generators over streams, and joins with static tables."""

    streams: tuple[str, ...]
    tables: tuple[str, ...]  # the static ones, those of subqueries included
    is_plain: bool  # one SELECT of one stream with one generator at most, and no subquery


@dataclass(frozen=True, slots=True)
class GroupKey:
    """An expression of GROUP BY."""

    text: str
    column: str | None  # the column that it is
    output: str | None  # the name under which it is selected as it is; of a window its end, or its start


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of the rows of one stream."""

    stream: str
    keys: tuple[GroupKey, ...]
    window: WindowCall | None
    having: Span | None
    aggregates: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A join of two streams. The bounds, None where there is none, are those of right minus left event time."""

    left: TableRead
    right: TableRead
    how: Join
    keys: tuple[tuple[str, str], ...]
    low_ms: int | None
    high_ms: int | None
    residual: tuple[Span, ...]  # the conditions that are neither a key nor a bound


@dataclass(frozen=True, slots=True)
class Static:
    """Static tables alone."""

    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A clause that streams do not have, and what to write instead."""

    clause: str
    span: Span
    advice: str


def shape_of(queries: Sequence[Query], inputs: Mapping[str, InputFacts]) -> Static | Rows | Groups | Pairs | Refused:
    """The shape of a block, given its parts and the facts of the tables that they read, by name in lower case."""
    raise NotImplementedError
