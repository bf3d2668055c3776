"""Values of a row that cannot be computed, such as a cast or an index: null in place of an error that stops the query.

Spark has an expression for this and no SQL function of it, so a function is registered in the session. It fails closed:
if a private name has changed, expressions that may fail are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import get_java_class
from py4j.protocol import Py4JError

from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.private_names import private
from odradek.pipelines.sql.functions import MAY_FAIL
from odradek.pipelines.sql.text import exp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRY = "try_eval"
IT = "it"  # the field with the value of an expression that could be computed
REASON = "cannot be computed: a cast, an index, a division or another value of the row"
FAILING = ("Bracket", "Div", "IntDiv", "Mod", "Add", "Sub", "Mul")


class RowErrorsUncatchable(PipelineError):
    """Spark has changed a private name, so that a row could stop the query."""


def may_fail(tree: exp.Expr) -> bool:
    """Whether Spark may raise an error for the values of a row."""
    return any(map(_may_fail, tree.walk()))


def _may_fail(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in MAY_FAIL
    if isinstance(node, exp.Cast):
        return not isinstance(node, exp.TryCast) and not _is_constant(node.this) and not node.to.is_type("text")
    if isinstance(node, exp.Neg):
        return not _is_constant(node.this)
    return isinstance(node, tuple(getattr(exp, each) for each in FAILING))


def _is_constant(node: exp.Expr) -> bool:
    """A constant fails before the first row, or never."""
    return isinstance(node, exp.Literal)


def tried(value: str, *, is_in_lambda: bool) -> str:
    """A struct with the value in the field `it`; null if it cannot be computed.

    Spark computes once what several expressions have in common, and would do so outside of the try: branches of `if`
    have nothing in common with others. It does not do that in lambdas.
    """
    made = f"named_struct('{IT}', {value})"
    return f"{TRY}({made if is_in_lambda else f'if(spark_partition_id() >= 0, {made}, null)'})"


def register_try(session: SparkSession) -> None:
    """Makes the function that `tried` calls known to a session."""
    if session.catalog.functionExists(TRY):
        return
    try:
        jvm: Any = private(session, "jvm")
        tag = jvm.scala.reflect.ClassTag.apply(get_java_class(private(jvm, "try")))
        found = private(jvm, "builder")(TRY, jvm.scala.Option.apply(None), tag)
        registry = private(private(private(session, "session"), "state")(), "functions")()
        private(registry, "register")(TRY, private(found, "second")(), "scala_udf")
    except (AttributeError, TypeError, Py4JError) as error:
        raise RowErrorsUncatchable(
            "this PySpark has changed a private name that is used to catch values of a row that cannot be computed; "
            "write try_cast, try_divide, get or split_part in place of what may fail"
        ) from error
