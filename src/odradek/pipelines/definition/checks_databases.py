"""Checks database URLs: SQLAlchemy URLs for tables and views, JDBC URLs for sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import JdbcOrigin, TableTarget
from odradek.pipelines.definition.nearest import nearest

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Place, Problems

# SQLAlchemy accepts more; a URL of another kind is an error only if it looks like a misspelling of one of these.
KINDS = ("sqlite", "postgresql", "postgres", "mysql", "mariadb", "oracle", "mssql")
FORMS = "sqlite:///file.db, or postgresql://user:password@host/name"


def check_databases(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.warehouse is not None:
        check_url(pipeline.warehouse, "the warehouse", pipeline.place, problems)
    for sink in pipeline.sinks:
        if isinstance(sink.target, TableTarget) and sink.target.url is not None:
            check_url(sink.target.url, f"url of sink '{sink.name}'", place_of(sink, "url"), problems)
    for view in pipeline.views:
        if view.url is not None:
            check_url(view.url, f"url of view '{view.name}'", place_of(view, "url"), problems)
    for source in pipeline.sources:
        if isinstance(source.origin, JdbcOrigin) and not source.origin.url.startswith("jdbc:"):
            problems.error(
                place_of(source, "jdbc", "url"),
                f"url of source '{source.name}' is not a JDBC URL",
                "write jdbc:postgresql://host/name, jdbc:sqlite:file.db, or another URL that starts with jdbc:",
            )


def check_url(url: str, what: str, place: Place, problems: Problems) -> None:
    kind = url.partition("://")[0].partition("+")[0]
    if url.startswith("jdbc:"):
        problems.error(place, f"{what} is a JDBC URL", f"tables and views take SQLAlchemy URLs: {FORMS}")
    elif "://" not in url:
        problems.error(place, f"{what} '{url}' is not a URL", f"write {FORMS}")
    elif kind not in KINDS and nearest(kind, KINDS) is not None:
        problems.error(place, f"{what} is of the unknown kind '{kind}'", f"did you mean '{nearest(kind, KINDS)}'?")
