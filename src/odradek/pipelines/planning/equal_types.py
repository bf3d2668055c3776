"""What the equality of two columns says of their values: Spark compares different types by a cast of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Primitive

if TYPE_CHECKING:
    from odradek.pipelines.definition.column_types import ColumnType

TEXT = Primitive("STRING")
INTEGERS = frozenset(Primitive(name) for name in ("TINYINT", "SMALLINT", "INT", "BIGINT"))


def determines(kind: ColumnType | None, other: ColumnType | None) -> bool:
    """Whether a value of the type equals at most one value of the other: the number 7 equals the texts '7' and '07',
    each of which equals one number. Of types that are not known nothing is."""
    if kind is None or other is None:
        return False
    return kind in (other, TEXT) or (kind in INTEGERS and other in INTEGERS)
