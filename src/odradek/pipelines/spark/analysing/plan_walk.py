"""What Spark accepts in a plan and the promise does not: implicit casts of STRING, state, and randomness.

The plan is read as Spark has analysed it, by private names. It fails closed: if one of them has changed, every function
raises `PlanUnreadable` instead of an answer.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from odradek.pipelines.planning.plan import OutputMode
from odradek.pipelines.spark.sessions.failures import PipelineError, plain_message
from odradek.pipelines.spark.sessions.private_names import analysed_plan, items, private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

# Operators that handle each row of a stream by itself. Any other operator over a stream counts as stateful.
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
OF_USER = frozenset(("PythonUDF", "ScalaUDF", "PythonUDAF"))  # declared as nondeterministic, as in SQL
TEXT = "STRING"


class PlanUnreadable(PipelineError):
    """Spark's plan cannot be read, so that nothing is known about it."""


@dataclass(frozen=True, slots=True)
class CastFound:
    """A cast that Spark has added."""

    expression: str  # that is a STRING, in Spark's words
    target: str  # a type


@contextmanager
def _failing_closed() -> Iterator[None]:
    try:
        yield
    except (AttributeError, TypeError, Py4JError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise PlanUnreadable(f"the plan cannot be read, because Spark has changed a private name ({reason})") from error


def implicit_casts(frame: DataFrame) -> list[CastFound]:
    """The casts of STRING values that the definition does not write. A constant, as in `at > '2026-01-01'`, depends on
    no row: Spark computes it before the first one."""
    with _failing_closed():
        names = private(frame.sparkSession, "jvm")
        pattern, tag = private(names, "cast pattern")(), private(names, "written cast")()

        def has_cast(node: Any) -> bool:
            return bool(private(node, "contains")(pattern))

        casts = (
            each
            for node in nodes_of(analysed_plan(frame), has_cast)
            for expression in items(private(node, "expressions")())
            for each in below(expression, has_cast)
            if private(each, "node")() == "Cast" and not private(each, "tag")(tag).isDefined()
        )
        found = [CastFound(str(each.child().sql()), type_of(each)) for each in casts if is_of_text(each)]
        return list(dict.fromkeys(found))


def is_of_text(cast: Any) -> bool:
    """Whether a STRING of a row gets another type, also within an array, a map or a struct."""
    return type_of(cast.child()).count(TEXT) > type_of(cast).count(TEXT) and not cast.child().foldable()


def type_of(expression: Any) -> str:
    return str(expression.dataType().sql())


def stateful_operator(frame: DataFrame) -> str | None:
    """The first operator over the stream that keeps state, by Spark's name of it."""
    with _failing_closed():
        return next(filter(None, map(state_of, nodes_of(analysed_plan(frame), is_streaming))), None)


def state_of(node: Any) -> str | None:
    name = str(private(node, "node")())
    if any(map(is_streaming, items(node.subqueries()))):
        return "subquery of the stream"
    if name == "Join":
        sides = [side for side, each in (("left", node.left()), ("right", node.right())) if is_streaming(each)]
        how = str(node.joinType())
        return None if len(sides) == 1 and how in ROW_JOINS[sides[0]] else f"{how} join"
    if name == "Union" and not all(map(is_streaming, items(private(node, "children")()))):
        return "Union with a static table"
    return None if name in STATELESS else name


def random_part(frame: DataFrame) -> str | None:
    """The first part of the plan whose value is not determined by the rows of the stream, such as `rand()`. Static
    tables are not looked at: their rows are the same for all."""
    with _failing_closed():
        for node in nodes_of(analysed_plan(frame), is_streaming):
            if private(node, "node")() == "Sample":
                return "sample()"
            found = next(filter(None, map(random_in, items(private(node, "expressions")()))), None)
            if found is not None:
                return found
        return None


def random_in(expression: Any) -> str | None:
    if private(expression, "deterministic")():
        return None
    inner = [each for each in items(private(expression, "children")()) if not private(each, "deterministic")()]
    if inner:
        return next(filter(None, map(random_in, inner)), None)
    return None if private(expression, "node")() in OF_USER else f"{private(expression, 'function')()}()"


def unsupported(frame: DataFrame, mode: OutputMode) -> str | None:
    """Why Spark would refuse a streaming query of the frame, in its words."""
    with _failing_closed():
        jvm = private(frame.sparkSession, "jvm")
        modes, check = private(jvm, "output modes"), private(jvm, "operator check")
        try:
            check(analysed_plan(frame), modes.Append() if mode is OutputMode.APPEND else modes.Update())
        except PySparkException as error:
            return plain_message(error)
        return None


def nodes_of(node: Any, enters: Callable[[Any], bool]) -> Iterator[Any]:
    """The operators of a plan, the last one first, those of its subqueries included; `enters` says which are read."""
    if enters(node):
        yield node
        for each in (*items(private(node, "children")()), *items(node.subqueries())):
            yield from nodes_of(each, enters)


def below(expression: Any, enters: Callable[[Any], bool]) -> Iterator[Any]:
    if enters(expression):
        yield expression
        for each in items(private(expression, "children")()):
            yield from below(each, enters)


def is_streaming(node: Any) -> bool:
    return bool(private(node, "is streaming")())
