"""Which columns in the condition of a join of streams are event time, and of which side of the join."""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp


class Time(Enum):
    """Whether a column is event time, for Spark: a column that its watermark marks."""

    MARKED = auto()
    LOOSE = auto()  # marked, of rows of a join of streams that may be older than the watermark by any time
    PLAIN = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of rows by lower-case name, in their order; `is_open` says that they may have others."""

    columns: Mapping[str, Time] = field(default_factory=dict)
    is_open: bool = False
    is_stream: bool = False

    @property
    def loose(self) -> frozenset[str]:
        return frozenset(name for name, time in self.columns.items() if time is Time.LOOSE)

    def loosened(self) -> Rows:
        """The rows of a side of a join of streams whose event time has no bound."""
        loose = {name: Time.LOOSE if time is Time.MARKED else time for name, time in self.columns.items()}
        return replace(self, columns=loose)


Scope = dict[str, Rows]  # the tables of FROM by lower-case name


@dataclass(frozen=True, slots=True)
class Sides:
    """The tables on both sides of a join."""

    left: Scope
    right: Scope

    @property
    def are_streams(self) -> bool:
        return all(any(rows.is_stream for rows in scope.values()) for scope in (self.left, self.right))

    def find(self, column: exp.Column) -> tuple[bool, Time] | None:
        """Whether a column is of the left side, and whether it is event time; None if its table is not known."""
        names = [part.name.lower() for part in column.parts]
        if len(names) > 1 and names[0] in {*self.left, *self.right}:
            is_left = names[0] in self.left
            rows = (self.left if is_left else self.right)[names[0]]
            return is_left, time_of(rows, names[1:])
        sides = [
            (is_left, rows) for is_left, scope in ((True, self.left), (False, self.right)) for rows in scope.values()
        ]
        found = [(is_left, time_of(rows, names)) for is_left, rows in sides if names[0] in rows.columns]
        is_open = any(rows.is_open for _, rows in sides)
        return found[0] if len(found) == 1 and not is_open else None

    def may_have(self, column: exp.Column) -> bool:
        """Whether a column may be of these tables; otherwise it is of another one of the query."""
        names, tables = [part.name.lower() for part in column.parts], {**self.left, **self.right}
        is_named = len(names) > 1 and names[0] in tables
        return is_named or any(rows.is_open or names[0] in rows.columns for rows in tables.values())

    def marked(self, *, is_left: bool) -> list[str]:
        """The columns of event time of a side, with the names of their tables."""
        scope = self.left if is_left else self.right
        return [
            f"{name}.{each}"
            for name, rows in scope.items()
            for each, time in rows.columns.items()
            if time in {Time.MARKED, Time.LOOSE}
        ]


def time_of(rows: Rows, names: list[str]) -> Time:
    if len(names) > 1:
        return Time.PLAIN  # a field of a struct
    return rows.columns.get(names[0], Time.UNKNOWN)
