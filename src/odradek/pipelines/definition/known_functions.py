"""The functions that the SQL of a pipeline can call: Spark's, those that it declares, and those of its Python code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import PythonTarget
from odradek.pipelines.definition.operations import KeyedState, PythonFunction
from odradek.pipelines.definition.python_code import find_module
from odradek.pipelines.definition.spark_functions import Functions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.model import Pipeline

# Settings that change what Spark's analyzer accepts, or that add functions.
CHANGES_ANALYSIS = (
    "spark.sql.ansi.", "spark.sql.legacy.", "spark.sql.extensions", "spark.sql.catalog", "spark.sql.casesensitive",
    "spark.sql.groupby", "spark.sql.timestamptype", "spark.sql.crossjoin", "spark.sql.parser.",
)  # fmt: skip
REGISTERS = ("udf.register", "udtf.register", "registerFunction", "registerJavaFunction", "CREATE TEMPORARY FUNCTION")


def known_functions(pipeline: Pipeline) -> Functions | None:
    """The functions; None if the definition's settings change what Spark accepts, so that nothing can be said."""
    if any(key.lower().startswith(CHANGES_ANALYSIS) for key in pipeline.spark):
        return None
    declared = frozenset(str(each.name).lower() for each in pipeline.functions)
    return Functions(declared, is_open=any(registers_functions(file) for file in python_files(pipeline)))


def python_files(pipeline: Pipeline) -> Iterator[str]:
    """The source files of the pipeline's Python code, and the definition itself if it is one."""
    if pipeline.place.file.endswith(".py"):
        yield pipeline.place.file
    references = [each.operation.function for each in pipeline.steps if isinstance(each.operation, PythonFunction)]
    references += [each.operation.processor for each in pipeline.steps if isinstance(each.operation, KeyedState)]
    references += [each.target.function for each in pipeline.sinks if isinstance(each.target, PythonTarget)]
    search = [pipeline.directory, str(Path.cwd()), *sys.path]
    for module in {each.module for each in references}:
        spec, _missing = find_module(module, search)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            yield spec.origin


def registers_functions(file: str) -> bool:
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(each in text for each in REGISTERS)
