"""URLs of databases: SQLAlchemy's for tables and views, JDBC's for sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import JdbcOrigin, TableTarget
from odradek.pipelines.definition.nearest import nearest

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Place, Problems

# Others are SQLAlchemy's to know; these are here so that a slip of the pen is noticed.
KINDS = ("sqlite", "postgresql", "postgres", "mysql", "mariadb", "oracle", "mssql")
FORMS = "sqlite:///file.db, or postgresql://user:password@host/name"


def check_databases(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.warehouse is not None:
        check_url(pipeline.warehouse, "the warehouse", pipeline.place, problems)
    for sink in pipeline.sinks:
        if isinstance(sink.target, TableTarget) and sink.target.url is not None:
            check_url(sink.target.url, f"url of sink '{sink.name}'", place_of(sink, "url"), problems)
    for source in pipeline.sources:
        if isinstance(source.origin, JdbcOrigin) and not source.origin.url.startswith("jdbc:"):
            problems.error(
                place_of(source, "jdbc", "url"),
                f"url of source '{source.name}' is not JDBC's",
                "jdbc:postgresql://host/name, jdbc:sqlite:file.db, or another that begins with jdbc:",
            )


def check_url(url: str, what: str, place: Place, problems: Problems) -> None:
    kind = url.partition("://")[0].partition("+")[0]
    if url.startswith("jdbc:"):
        problems.error(place, f"{what} is JDBC's", f"tables and views take SQLAlchemy's: {FORMS}")
    elif "://" not in url:
        problems.error(place, f"{what} '{url}' is not a URL", FORMS)
    elif kind not in KINDS and nearest(kind, KINDS) is not None:
        problems.error(place, f"{what} is of an unknown kind, '{kind}'", f"did you mean '{nearest(kind, KINDS)}'?")
