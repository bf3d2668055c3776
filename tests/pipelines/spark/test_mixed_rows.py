"""Whether a plan may change the order of a stream's rows, read from nodes that stand for those of Spark."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from odradek.pipelines.spark.stateful_plans import has_mixed_rows


class Sequence(tuple["Node", ...]):
    """A sequence of Scala."""

    __slots__ = ()

    def size(self) -> int:
        return len(self)

    def apply(self, index: int) -> Node:
        return self[index]


@dataclass(frozen=True)
class Node:
    """An operator of an analysed plan."""

    name: str
    inputs: tuple[Node, ...] = ()
    queries: tuple[Node, ...] = ()
    is_stream: bool = True

    def nodeName(self) -> str:  # noqa: N802 - Spark's name
        return self.name

    def isStreaming(self) -> bool:  # noqa: N802
        return self.is_stream

    def children(self) -> Sequence:
        return Sequence(self.inputs)

    def subqueries(self) -> Sequence:
        return Sequence(self.queries)


STREAM = Node("StreamingRelationV2")
TABLE = Node("LogicalRelation", is_stream=False)
IN_TABLE = Node("Filter", (STREAM,), (Node("Project", (TABLE,), is_stream=False),))


@pytest.mark.parametrize(
    ("plan", "is_mixed"),
    [
        (Node("Project", (Node("Filter", (STREAM,)),)), False),
        (Node("Union", (STREAM, STREAM)), True),
        (Node("Join", (STREAM, TABLE)), True),
        (Node("Project", (IN_TABLE,)), True),
        (Node("Filter", (TABLE,), (TABLE,), is_stream=False), False),
    ],
)
def test_joins_that_are_written_as_subqueries_mix_rows(plan: Node, is_mixed: bool) -> None:
    assert has_mixed_rows(plan) is is_mixed
