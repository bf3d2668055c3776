"""The names that an expression of a SELECT can use: tables by alias with their columns, and other names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.table_columns import Columns

if TYPE_CHECKING:
    from odradek.pipelines.definition.column_types import ColumnType

Tables = Callable[[str], Columns | None]


@dataclass(frozen=True, slots=True)
class Scope:
    """The tables of one SELECT by alias (None if their columns are unknown), and other names in scope."""

    tables: dict[str, Columns | None]
    extra: frozenset[str]
    is_open: bool  # a source of unknown columns is in scope

    @property
    def is_known(self) -> bool:
        return not self.is_open and all(columns is not None for columns in self.tables.values())

    def all_columns(self) -> Columns:
        types: dict[str, ColumnType | None] = {}
        for columns in self.tables.values():
            if columns is not None:
                types.update({name: kind for name, kind in columns.types.items() if name not in types})
        return Columns(types)

    def tables_with(self, name: str) -> list[Columns]:
        """The columns of the tables that have a column of this name."""
        return [columns for columns in self.tables.values() if columns is not None and name in columns]

    def type_of(self, name: str) -> ColumnType | None:
        """The type of a column that is named without its table; None if that is not certain."""
        found = self.tables_with(name)
        return found[0].type_of(name) if self.is_known and len(found) == 1 and name.lower() not in self.extra else None
