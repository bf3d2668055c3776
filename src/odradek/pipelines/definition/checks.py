"""The checks of a definition that need no plan: names, columns, imports, databases, engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks_columns import check_columns
from odradek.pipelines.definition.checks_databases import check_databases
from odradek.pipelines.definition.checks_engines import check_engine
from odradek.pipelines.definition.checks_functions import check_functions
from odradek.pipelines.definition.checks_lakehouse import check_lakehouse
from odradek.pipelines.definition.checks_names import check_names
from odradek.pipelines.definition.checks_outputs import check_outputs
from odradek.pipelines.definition.checks_repeated import check_repeated
from odradek.pipelines.definition.checks_reserved import check_reserved
from odradek.pipelines.definition.checks_unsupported import check_unsupported
from odradek.pipelines.definition.columns import known_columns
from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.known_functions import known_functions
from odradek.pipelines.definition.python_code import check_python
from odradek.pipelines.definition.record_names import check_records

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Parsed
    from odradek.pipelines.definition.places import Problems


def check_definition(parsed: Parsed, problems: Problems) -> None:
    """Reports every problem.

    Names of sources and steps that could not be parsed count as declared, so that one mistake is reported once."""
    pipeline = parsed.pipeline
    graph = build_graph(pipeline)
    functions = known_functions(pipeline)
    known = known_columns(pipeline, graph, functions)
    check_columns(pipeline, known, functions, problems)
    check_repeated(pipeline, known, problems)
    check_reserved(pipeline, known, problems)
    check_records(pipeline, graph, known, problems)
    check_python(pipeline, problems)
    check_functions(pipeline, problems)
    check_databases(pipeline, known, problems)
    check_lakehouse(pipeline, known, problems)
    check_outputs(pipeline, known, problems)
    check_engine(pipeline, problems)
    check_unsupported(pipeline, problems)
    check_names(parsed, graph, problems)
