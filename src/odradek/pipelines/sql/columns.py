"""The columns of a table by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from odradek.pipelines.definition.column_types import ColumnType


class Columns:
    """Column names in their order with their types, None where a type is not certain. Names are case-insensitive."""

    __slots__ = ("_folded", "types")

    def __init__(self, types: Mapping[str, ColumnType | None]) -> None:
        self.types = dict(types)
        self._folded = {name.lower(): name for name in types}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._folded

    @property
    def names(self) -> list[str]:
        return list(self.types)

    def type_of(self, name: str) -> ColumnType | None:
        found = self._folded.get(name.lower())
        return None if found is None else self.types[found]

    def fields_of(self, name: str) -> Columns | None:
        """The fields of a struct column; None for other columns."""
        kind = self.type_of(name)
        return Columns({each.name: each.type for each in kind.fields}) if isinstance(kind, Struct) else None

    def without(self, names: Collection[str]) -> Columns:
        folded = {name.lower() for name in names}
        return Columns({name: kind for name, kind in self.types.items() if name.lower() not in folded})
