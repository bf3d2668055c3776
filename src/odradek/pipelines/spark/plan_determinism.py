"""Finds expressions in the plan of a Python step whose value is not determined by the rows.

Each flow, each output of a batch and each replay computes the step, and would have other values. Functions of the user
that are declared as nondeterministic are accepted, as in SQL, and so are aggregates of which `validate` warns there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipelines.spark.sessions.private_names import DETERMINISM, analysed_plan, or_plainly, private
from odradek.pipelines.spark.stateful_plans import is_streaming, items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OF_USER = frozenset(("PythonUDF", "ScalaUDF", "PythonUDAF"))
AGGREGATE = ".expressions.aggregate."  # a package of Spark
SAMPLE = "Sample"  # an operator


def random_part(frame: DataFrame) -> str | None:
    """The first part of the frame's plan that is random, such as `rand()`; None if there is none, or if unknown."""
    return or_plainly(DETERMINISM, lambda: random_in_plan(analysed_plan(frame)), None)


def reads_clock(frame: DataFrame) -> bool:
    return or_plainly(DETERMINISM, lambda: has_clock(frame), False)


def has_clock(frame: DataFrame) -> bool:
    pattern = private(private(frame.sparkSession, "jvm"), "clock pattern")()
    return bool(private(analysed_plan(frame), "contains")(pattern))


def random_in_plan(node: Any) -> str | None:
    """Static tables are not looked at: their rows are the same for all."""
    if not is_streaming(node):
        return None
    if private(node, "node")() == SAMPLE:
        return "sample()"
    found = (random_in(each) for each in items(private(node, "expressions")()))
    below = (random_in_plan(each) for each in items(private(node, "children")()))
    return next((each for part in (found, below) for each in part if each is not None), None)


def random_in(expression: Any) -> str | None:
    if private(expression, "deterministic")():
        return None
    children = items(private(expression, "children")())
    inner = next((found for found in map(random_in, children) if found is not None), None)
    is_own = all(private(each, "deterministic")() for each in children)
    return f"{private(expression, 'function')()}()" if is_own and not is_accepted(expression) else inner


def is_accepted(expression: Any) -> bool:
    """Whether this is a function of the user, or an aggregate such as `collect_list`, which depends on the order."""
    return private(expression, "node")() in OF_USER or AGGREGATE in str(expression.getClass().getName())
