"""The generator of a SELECT, and whether a function of arrays can make its rows of the one row that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.column_types import Map
from odradek.pipelines.sql.functions import Kind, kind_of
from odradek.pipelines.sql.results import certain_type

if TYPE_CHECKING:
    from odradek.pipelines.sql.query import Call, Query


@dataclass(frozen=True, slots=True)
class Generator:
    """A generator in SELECT or in a LATERAL VIEW, and the columns that it makes."""

    call: Call
    names: tuple[str, ...]
    alias: str | None
    is_item: bool

    @property
    def is_plain(self) -> bool:
        """Whether its rows are an array made of its arguments: those of `explode`, `posexplode` and a whole `stack`."""
        columns, values = len(self.names), len(self.call.arguments)
        if self.call.name == "stack":
            count = self.call.tree.expressions[0].name if values else ""
            return columns > 0 and values > 1 and count == str((values - 1) / columns).removesuffix(".0")
        return values == 1 and (self.call.name, columns) in {("explode", 1), ("explode", 2), ("posexplode", 2)}


def generators_of(query: Query) -> list[Generator]:
    """The generators that are items of SELECT or a LATERAL VIEW."""
    calls = {id(each.tree): each for each in query.calls if kind_of(each.name) is Kind.GENERATOR}
    made = [
        Generator(calls[id(item.tree)], item.names or _names(query, calls[id(item.tree)]), None, is_item=True)
        for item in query.items
        if id(item.tree) in calls
    ]
    for view in query.laterals:
        call = calls.get(id(view.tree))
        if call is not None and not view.is_outer:
            made.append(Generator(call, view.columns or _names(query, call), view.alias, is_item=False))
    return made


def has_plain_generators(query: Query) -> bool:
    """Whether there is no generator, or one that is plain."""
    calls = [each for each in query.calls if kind_of(each.name) is Kind.GENERATOR]
    made = generators_of(query)
    return len(calls) == len(made) == len(query.laterals) + sum(each.is_item for each in made) and (
        not made or (len(made) == 1 and made[0].is_plain)
    )


def _names(query: Query, call: Call) -> tuple[str, ...]:
    """The names that Spark gives to columns without an alias."""
    if call.name == "explode" and call.tree.expressions:
        return ("key", "value") if isinstance(certain_type(query, call.tree.expressions[0]), Map) else ("col",)
    return ("pos", "col") if call.name == "posexplode" else ()
