"""Whether the plan of a streaming frame keeps state, read from the plan as Spark has analysed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipelines.spark.sessions.private_names import STATE, analysed_plan, or_plainly, private

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
GROUPING = frozenset(("Aggregate",))
AGGREGATING = frozenset((*GROUPING, "Distinct"))
REMOVING = frozenset(("Filter", "MapInArrow", "MapInPandas", "MapPartitions", "PythonMapInArrow", "TypedFilter"))
MIXING = frozenset(("Deduplicate", "Join", "RebalancePartitions", "RepartitionByExpression", "Sort", "Union"))
SORTING = frozenset(("Sort",))
OUTER_JOINS = frozenset(("LeftOuter", "RightOuter", "FullOuter"))
# The joins with a static table whose rows depend on one row of the stream only, by the side of the stream.
ROW_JOINS = {"left": {"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"}, "right": {"Inner", "Cross", "RightOuter"}}


def keeps_state(frame: DataFrame, *, if_unknown: bool = True) -> bool:
    """Whether the frame's plan keeps state; by default True if it cannot be read: the streaming query runs any step."""
    return or_plainly(STATE, lambda: has_state(analysed_plan(frame)), if_unknown)


def aggregates(frame: DataFrame) -> bool:
    """Whether rows of the frame may change with later records; True if its plan cannot be read."""
    return or_plainly(STATE, lambda: has_operator(analysed_plan(frame), AGGREGATING), True)


def removes_rows(frame: DataFrame) -> bool:
    """Whether the plan may remove rows of the stream; False if it cannot be read."""
    return or_plainly(STATE, lambda: has_removal(analysed_plan(frame)), False)


def removes_groups(frame: DataFrame) -> bool:
    """Whether the plan may remove rows of an aggregation of its own; False if it cannot be read."""
    return or_plainly(STATE, lambda: has_removed_groups(analysed_plan(frame)), False)


def sorts_rows(frame: DataFrame) -> bool:
    """Whether the plan sorts rows of the stream; True if it cannot be read."""
    return or_plainly(STATE, lambda: has_operator(analysed_plan(frame), SORTING), True)


def joins_streams_outer(frame: DataFrame) -> bool:
    """Whether the plan has an outer join of two streams; False if it cannot be read."""
    return or_plainly(STATE, lambda: has_outer_join(analysed_plan(frame)), False)


def has_outer_join(node: Any) -> bool:
    if not is_streaming(node):
        return False
    is_join = private(node, "node")() == "Join" and is_streaming(node.left()) and is_streaming(node.right())
    is_outer = is_join and str(node.joinType()) in OUTER_JOINS
    return is_outer or any(map(has_outer_join, items(private(node, "children")())))


def unites_static_rows(frame: DataFrame) -> bool:
    """Whether the plan has a union of the stream with a static table; False if it cannot be read."""
    return or_plainly(STATE, lambda: has_static_union(analysed_plan(frame)), False)


def has_static_union(node: Any) -> bool:
    if not is_streaming(node):
        return False
    children = items(private(node, "children")())
    is_mixed = private(node, "node")() == "Union" and not all(map(is_streaming, children))
    return is_mixed or any(map(has_static_union, children))


def mixes_rows(frame: DataFrame) -> bool:
    """Whether the plan may change the order of the stream's rows; True if it cannot be read."""
    return or_plainly(STATE, lambda: has_mixed_rows(analysed_plan(frame)), True)


def has_mixed_rows(node: Any) -> bool:
    if not is_streaming(node):
        return False
    name = private(node, "node")()
    is_mixing = node.shuffle() if name == "Repartition" else name in MIXING
    has_subquery = bool(items(node.subqueries()))  # IN and EXISTS become joins when Spark optimises the plan
    return is_mixing or has_subquery or any(map(has_mixed_rows, items(private(node, "children")())))


def has_removal(node: Any) -> bool:
    return is_streaming(node) and (is_removal(node) or any(map(has_removal, items(private(node, "children")()))))


def has_removed_groups(node: Any) -> bool:
    if not is_streaming(node):
        return False
    children = items(private(node, "children")())
    is_above = is_removal(node) and any(has_operator(each, GROUPING) for each in children)
    return is_above or any(map(has_removed_groups, children))


def is_removal(node: Any) -> bool:
    name = private(node, "node")()
    if name == "Join":
        return str(node.joinType()) not in OUTER_JOINS
    return not node.outer() if name == "Generate" else name in REMOVING


def has_operator(node: Any, names: frozenset[str]) -> bool:
    if not is_streaming(node):
        return False
    children = items(private(node, "children")())
    return private(node, "node")() in names or any(has_operator(each, names) for each in children)


def has_state(node: Any) -> bool:
    if not is_streaming(node):
        return False
    name = private(node, "node")()
    if name == "Join":
        side = "left" if is_streaming(node.left()) else "right"
        if (is_streaming(node.left()) and is_streaming(node.right())) or str(node.joinType()) not in ROW_JOINS[side]:
            return True
    elif name not in STATELESS:
        return True
    return any(map(has_state, items(private(node, "children")()))) or any(
        is_streaming(each) for each in items(node.subqueries())
    )


def is_streaming(node: Any) -> bool:
    return bool(private(node, "is streaming")())


def items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]
