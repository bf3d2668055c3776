"""Values of a row that cannot be computed, such as a cast or an index: null in place of an error that stops the query.

Spark has an expression for this and no SQL function of it, so a function is registered in the session. It fails closed:
if a private name has changed, expressions that may fail are refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import get_java_class
from py4j.protocol import Py4JError

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.plan import CANNOT_COMPUTE, Check
from odradek.pipelines.spark.computing.counts import Count, Kind
from odradek.pipelines.spark.computing.rows import ROW, Rows, all_of, struct_of, text_of
from odradek.pipelines.spark.frames import REJECTED, literal, quoted
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.private_names import private

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from odradek.pipelines.spark.computing.rows import Frame

TRY = "try_eval"
INDEX = "__index"  # the lambda variable for the index of an element
IT = "it"  # the field with the value of an expression that could be computed
REASON = f"{CANNOT_COMPUTE}: a cast, an index, a division or another value of the row"


def tried(value: str, *, is_in_lambda: bool) -> str:
    """A struct with the value in the field `it`; null if it cannot be computed.

    Spark computes once what several expressions have in common, and would do so outside of the try: branches of `if`
    have nothing in common with others. It does not do that in lambdas.
    """
    made = f"named_struct('{IT}', {value})"
    return f"{TRY}({made if is_in_lambda else f'if(spark_partition_id() >= 0, {made}, null)'})"


def try_rows(frame: Frame, name: str, rows: Rows, value: str) -> str:
    """A column with a value of each row, in the field `it` of a struct or of structs; null if it cannot be computed."""
    register_try(frame.session)
    return frame.add(f"__tried_{name}", rows.mapped(tried(value, is_in_lambda=rows.is_many)))


def refused_rows(frame: Frame, name: str, rows: Rows, column: str) -> Rows:
    """The rows for which a column of `try_rows` is null, with the reason."""
    if rows.array is None:
        fields = {**rows.fields, REJECTED: (frame.add(f"__reason_{name}", literal(REASON)),)}
        return replace(rows, fields=fields, condition=all_of([rows.condition, f"{quoted(column)} is null"]))
    made = {**{each: text_of(path) for each, path in rows.fields.items()}, REJECTED: literal(REASON)}
    failed = f"filter({quoted(rows.array)}, ({ROW}, {INDEX}) -> get({quoted(column)}, {INDEX}) is null)"
    several = frame.add(f"__refused_{name}", f"transform({failed}, {ROW} -> {struct_of(made)})")
    return replace(Rows.several(several, made), shows_records=rows.shows_records)


def refused_count(of: str, refused: Rows, *, is_of_end: bool = False) -> Count:
    """Counts the rows of `refused_rows`."""
    check = Check(CANNOT_COMPUTE, "true", Otherwise.QUARANTINE, REASON, is_implicit=True)
    return Count(Kind.UNMET, of, refused.count(), check, is_of_end)


def computed_rows(frame: Frame, name: str, rows: Rows, fields: Mapping[str, str]) -> tuple[Rows, Rows]:
    """The rows with these fields in place of their own, and the rows for which a field cannot be computed."""
    column = try_rows(frame, name, rows, struct_of(fields))
    refused = refused_rows(frame, name, rows, column)
    if not rows.is_many:
        return Rows({each: (column, IT, each) for each in fields}, f"{quoted(column)} is not null"), refused
    made = f"transform(filter({quoted(column)}, {ROW} -> {ROW} is not null), {ROW} -> {ROW}.{IT})"
    return Rows.several(frame.add(f"__made_{name}", made), fields), refused


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
        raise PipelineError(
            "this PySpark has changed a private name that is used to catch values of a row that cannot be computed; "
            "write try_cast, try_divide, get or split_part in place of what may fail"
        ) from error
