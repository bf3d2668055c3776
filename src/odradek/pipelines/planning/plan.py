"""The plan of a pipeline: its tables, its ends and its flows, read by validate, the compiler and all tools.

A declared step is a table, and so is each query that is cut out of its SQL. A sink and a view are both an end.
"""

from __future__ import annotations

import re
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.model import Source, Step, place_of
from odradek.pipelines.definition.operations import Sql
from odradek.pipelines.definition.places import NOWHERE, Place
from odradek.pipelines.sql.functions import Kind, kind_of
from odradek.pipelines.sql.text import position

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline, Places, Target, View
    from odradek.pipelines.definition.operations import Operation
    from odradek.pipelines.definition.vocabulary import Otherwise
    from odradek.pipelines.sql.blocks import Part
    from odradek.pipelines.sql.columns import Columns
    from odradek.pipelines.sql.joins import Pairs
    from odradek.pipelines.sql.query import Query
    from odradek.pipelines.sql.shapes import Groups, Refused, Rows

CANNOT_COMPUTE = "cannot be computed"  # the check of a table whose expressions may fail for a row
MADE_PART = re.compile(r"part\d+|groups|pairs|view|\d+")  # of a hidden name, which users did not write
PASSES = "__passes"  # the column of groups that says whether HAVING keeps them
LEFT, RIGHT = "l_", "r_"  # the prefixes of the columns of both sides of a join of streams in SQL


@dataclass(frozen=True, slots=True)
class Path:
    """What is known of the rows of a table, by all that is before it."""

    is_stream: bool = False
    watermark: str | None = None  # the table that has it
    event_time: str | None = None  # the column
    lost_by: str | None = None  # the table behind which no column is event time any more
    is_ordered: bool = False  # by arrival; of groups: whether there is one row of each
    groups: tuple[tuple[str, ...], ...] | None = None  # the columns that are each expression of GROUP BY
    grouped_by: str | None = None  # the table that made the groups
    never_final: str | None = None  # the table whose groups never become final
    can_change: bool = False  # whether the groups can be read before they are final
    state: tuple[str, ...] = ()  # the tables with state
    keeps_other_state: bool = False  # apart from `deduplicate`, behind which rows are final
    sessions: str | None = None  # the table that made sessions


@dataclass(frozen=True, slots=True)
class RowSql:
    """A SELECT that is computed row by row. With `pairs`, it reads those of a join in place of its tables."""

    query: Query
    shape: Rows
    pairs: Pairs | None = None

    @property
    def makes_several(self) -> bool:
        """Whether a generator or a LATERAL VIEW makes several rows of one."""
        return bool(self.query.laterals) or any(kind_of(each.name) is Kind.GENERATOR for each in self.query.calls)


@dataclass(frozen=True, slots=True)
class UnionSql:
    """UNION ALL of tables, by position. Each part of the query is a table."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupSql:
    """Groups of one stream. HAVING is a column, by which the table behind it chooses."""

    query: Query
    shape: Groups


@dataclass(frozen=True, slots=True)
class PairSql:
    """The pairs of a join of two streams, with all columns of both sides under prefixes."""

    query: Query
    shape: Pairs


@dataclass(frozen=True, slots=True)
class StaticSql:
    """Any SQL over static tables alone."""

    part: Part


@dataclass(frozen=True, slots=True)
class Unplanned:
    """SQL that streams do not have. What is behind it is not judged."""

    why: Refused


if TYPE_CHECKING:
    MadeBy = (
        Source | Operation | RowSql | UnionSql | GroupSql | PairSql | StaticSql | Unplanned
    )  # SQL is one of the six


class OutputMode(StrEnum):
    """Which rows of its root a flow has: final ones, or all that changed."""

    APPEND = "append"
    UPDATE = "update"


class EndMode(StrEnum):
    """How an end takes rows."""

    APPEND = "append"
    UPDATE = "update"  # intermediate rows of groups, too
    KEYED = "keyed"  # a row replaces that of its key
    CHANGES = "changes"  # change data


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that the rows of a table should meet. Implicit ones come from the rules: rows that do not meet them
    are not judged by others."""

    name: str
    condition: str  # SQL over the table; null is not met
    otherwise: Otherwise
    reason: str  # of a dead letter
    is_implicit: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by name. A hidden table is a part of the declaration that owns it, and users do not see its name."""

    name: str
    inputs: tuple[str, ...]  # in the order in which they are named
    made_by: MadeBy
    owner: Source | Step | View
    columns: Columns | None = None
    path: Path = Path()
    checks: tuple[Check, ...] = ()

    @property
    def is_hidden(self) -> bool:
        return self.name != self.owner.name

    @property
    def described(self) -> str:
        kind = "source" if isinstance(self.owner, Source) else "step" if isinstance(self.owner, Step) else "view"
        return f"{kind} '{self.owner.name}'"

    def place(self, *keys: str) -> Place:
        return place_of(self.owner, *keys)

    def place_in_sql(self, offset: int) -> Place:
        """The place of a position in the SQL of the step."""
        operation = self.owner.operation if isinstance(self.owner, Step) else None
        return operation.place.inside(*position(operation.text, offset)) if isinstance(operation, Sql) else self.place()


@dataclass(frozen=True, slots=True)
class End:
    """A sink, or a view, whose target is a table."""

    name: str
    input: str
    target: Target
    mode: EndMode = EndMode.APPEND
    key: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    is_view: bool = False
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: Places = field(default_factory=dict, compare=False, repr=False)

    @property
    def described(self) -> str:
        return f"{'view' if self.is_view else 'sink'} '{self.name}'"


@dataclass(frozen=True, slots=True)
class Flow:
    """What one streaming query runs. `after` are the tables that each batch of the root's rows goes through."""

    name: str
    root: str
    mode: OutputMode = OutputMode.APPEND
    after: tuple[str, ...] = ()
    ends: tuple[End, ...] = ()
    owned: frozenset[str] = frozenset()  # tables whose refused rows it counts and writes
    counted: frozenset[str] = frozenset()  # tables before its root whose refused rows it counts only
    files: End | None = None  # written by Spark's file sink, without batches
    uses_state_trigger: bool = False
    is_row_program: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The tables in the order in which they can be computed, the ends, and the flows, which are there once no rule
    refuses anything."""

    pipeline: Pipeline
    tables: dict[str, Table]  # by name in lower case
    ends: tuple[End, ...] = ()
    flows: tuple[Flow, ...] = ()

    def table(self, name: str) -> Table:
        return self.tables[name.lower()]

    def shown(self, name: str) -> str:
        """The name that users know: that of a query in WITH or FROM, or of the declaration that a table is part of."""
        table = self.table(name)
        parts = table.name.removeprefix(table.owner.name).split("__") if table.is_hidden else []
        return next((each for each in parts if each and not MADE_PART.fullmatch(each)), table.owner.name)

    def path(self, name: str) -> Path:
        return self.table(name).path

    def is_stream(self, name: str) -> bool:
        return self.table(name).path.is_stream

    def upstream(self, name: str) -> tuple[str, ...]:
        """The table and all before it, in the order of the plan; itself last."""
        wanted = {name.lower()}
        for key in reversed(self.tables):
            if key in wanted:
                wanted.update(each.lower() for each in self.tables[key].inputs)
        return tuple(each.name for key, each in self.tables.items() if key in wanted)

    @property
    def streams(self) -> tuple[Source, ...]:
        return tuple(each for each in self.pipeline.sources if each.is_stream)
