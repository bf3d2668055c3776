"""Registers the Python functions of a definition for SQL."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from pyspark.util import PythonEvalType

from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.user_code import load_reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Function, Pipeline


OF_ROWS = (PythonEvalType.SQL_SCALAR_PANDAS_UDF, PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF)


def register_functions(session: SparkSession, pipeline: Pipeline) -> None:
    """Makes the functions callable in SQL of this session, and of the sessions of queries that are started in it."""
    for each in pipeline.functions:
        session.udf.register(each.name, user_function(each, load_reference(each.reference, pipeline.directory)))


def user_function(declared: Function, function: Any) -> Any:
    from pyspark.sql.functions import udf  # noqa: PLC0415 - most pipelines have no functions
    from pyspark.sql.pandas.functions import pandas_udf  # noqa: PLC0415

    if not callable(function):
        raise PipelineError(f"{declared.place}: {declared.reference} is not a function")
    made: Any
    if declared.is_pandas:
        made = pandas_udf(with_series_hints(function), declared.returns.ddl)  # type: ignore[call-overload]  # the types of PySpark omit functions whose hints are made at run time
        if made.evalType not in OF_ROWS:
            raise PipelineError(
                f"{declared.place}: {declared.reference} does not return a Series for each batch of rows, by its type "
                "hints; functions of SQL cannot aggregate"
            )
    else:
        made = udf(function, declared.returns.ddl)
    return made if declared.is_deterministic else made.asNondeterministic()


def with_series_hints(function: Any) -> Any:
    """The function, as one from Series to Series unless its type hints say otherwise: Spark needs hints."""
    import pandas as pd  # noqa: PLC0415

    if getattr(function, "__annotations__", {}).get("return") is not None:
        return function
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    def of_series(*values: pd.Series) -> pd.Series:
        return function(*values)

    of_series.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # inspect reads it, see PEP 362
    of_series.__annotations__ = {**dict.fromkeys(parameters, pd.Series), "return": pd.Series}
    return of_series
