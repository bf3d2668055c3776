"""A flow: the part of a pipeline that one streaming query runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.pipelines.definition.vocabulary import SinkMode

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Sink, View


@dataclass(frozen=True, slots=True)
class Flow:
    """One streaming query. `after` are the steps that each batch of the root's rows goes through."""

    name: str
    root: str
    mode: SinkMode = SinkMode.APPEND  # APPEND or UPDATE
    after: tuple[str, ...] = ()
    sinks: tuple[Sink, ...] = ()
    views: tuple[View, ...] = ()
    owned: frozenset[str] = field(default_factory=frozenset)
    counted: frozenset[str] = field(default_factory=frozenset)  # sources whose unparsed records the query counts
    files: Sink | None = None  # written by Spark's file sink, without foreachBatch
    aggregate: View | None = None  # aggregated by the streaming query, before the batch
    uses_state_trigger: bool = False  # runs with state_trigger
    parts: tuple[Flow, ...] = ()  # flows that share the query, in the order of their state; the root is their source
