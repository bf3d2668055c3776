"""The operations of steps, and the SQL expressions and Python objects that a definition names."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.places import NOWHERE, Place
from odradek.pipelines.definition.vocabulary import Duration, StateClock, StateOrder, StreamJoinKind

if TYPE_CHECKING:
    from odradek.pipelines.definition.column_types import Column


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A SQL expression and the name of the column, header or aggregate that it defines."""

    name: str
    expression: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    expression_place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PythonReference:
    """A function or a class by its import path, `package.module:name`."""

    module: str
    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@dataclass(frozen=True, slots=True)
class Sql:
    """A query whose tables are sources and other steps."""

    text: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function of one DataFrame for each input, in their order, that returns a DataFrame."""

    inputs: tuple[str, ...]
    function: PythonReference
    columns: tuple[Column, ...] | None = None  # the columns of its result, if declared


@dataclass(frozen=True, slots=True)
class Window:
    """A time window over a column of event time: tumbling, sliding if `slide` is set, or a session if `gap` is.

    A session ends when a group has no row for the length of the gap."""

    column: str
    size: Duration | None = None
    slide: Duration | None = None
    gap: Duration | None = None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A row per group; with a window also `window_start` and `window_end`."""

    input: str
    aggregates: tuple[NamedExpression, ...]
    by: tuple[str, ...] = ()
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Deduplication:
    """The first row of each key; with `within`, a key is dropped from state after that much event time."""

    input: str
    key: tuple[str, ...]
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """A join of two streams on columns of the same name; event times of matching rows differ by at most `within`.

    Without `within`, rows match at any time, and all are kept for ever."""

    input: str
    stream: str
    on: tuple[str, ...]
    within: Duration | None
    how: StreamJoinKind = StreamJoinKind.INNER


@dataclass(frozen=True, slots=True)
class KeyedState:
    """A `StatefulProcessor` by import path, run by `transformWithState` for the rows of each key."""

    input: str
    key: tuple[str, ...]
    processor: PythonReference
    timeout: Duration | None = None
    clock: StateClock = StateClock.PROCESSING
    columns: tuple[Column, ...] | None = None  # the columns of its result; if None, the class declares them
    order: StateOrder = StateOrder.ARRIVAL

    @property
    def has_timers(self) -> bool:
        """Whether the definition says that the processor has timers; it may have others."""
        return self.timeout is not None or self.clock is StateClock.EVENT


Operation = Sql | PythonFunction | Aggregation | Deduplication | StreamJoin | KeyedState
