"""The plan of a pipeline: its tables, its ends and its flows, read by validate, the compiler and all tools.

A declared step is a table, and so is each query that is cut out of its SQL. A sink and a view are both an end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.pipelines.definition.places import NOWHERE, Place

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Places, Target
    from odradek.pipelines.definition.vocabulary import Otherwise


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


@dataclass(frozen=True, slots=True)
class Flow:
    """What one streaming query runs. `after` are the tables that each batch of the root's rows goes through."""

    name: str
    root: str
    mode: OutputMode = OutputMode.APPEND
    after: tuple[str, ...] = ()
    ends: tuple[End, ...] = ()
    owned: frozenset[str] = frozenset()  # tables whose refused rows it counts and writes
    counted: frozenset[str] = frozenset()  # sources whose refused records it counts only
    files: End | None = None  # written by Spark's file sink, without batches
    uses_state_trigger: bool = False
    is_row_program: bool = False
