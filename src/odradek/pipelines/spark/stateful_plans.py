"""Whether the plan of a streaming frame keeps state, read from the plan as Spark has analysed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Operators that handle each row of a stream by itself. Any other operator over a stream counts as stateful, and is left
# to the streaming query, in which Spark either keeps its state or refuses it.
STATELESS = frozenset(
    """
    CTERelationDef CTERelationRef CollectMetrics DeserializeToObject EventTimeWatermark Expand Filter Generate
    MapElements MapInArrow MapInPandas MapPartitions Project PythonMapInArrow RebalancePartitions Repartition
    RepartitionByExpression ResolvedHint SerializeFromObject StreamingDataSourceV2Relation StreamingExecutionRelation
    StreamingRelation StreamingRelationV2 SubqueryAlias TypedFilter Union UpdateEventTimeWatermarkColumn View WithCTE
    """.split()  # noqa: SIM905 - a list would have a line for each name
)
# The joins with a static table whose rows depend on one row of the stream only, by the side of the stream.
ROW_JOINS = {"left": {"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"}, "right": {"Inner", "Cross", "RightOuter"}}


def keeps_state(frame: DataFrame) -> bool:
    """Whether the frame's plan keeps state. True if it cannot be read: the streaming query is right for any step."""
    try:
        return has_state(frame._jdf.queryExecution().analyzed())  # noqa: SLF001 - PySpark has no public API for it
    except (Py4JError, AttributeError, TypeError):
        return True


def has_state(node: Any) -> bool:
    if not node.isStreaming():
        return False
    name = node.nodeName()
    if name == "Join":
        side = "left" if node.left().isStreaming() else "right"
        if (node.left().isStreaming() and node.right().isStreaming()) or str(node.joinType()) not in ROW_JOINS[side]:
            return True
    elif name not in STATELESS:
        return True
    return any(map(has_state, items(node.children()))) or any(each.isStreaming() for each in items(node.subqueries()))


def items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]
