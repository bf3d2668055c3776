"""Checks database URLs: SQLAlchemy URLs for tables and views, JDBC URLs for sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import JdbcOrigin, Sink, TableTarget
from odradek.pipelines.definition.nearest import nearest
from odradek.pipelines.definition.parsing_changes import changes_of

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline, View
    from odradek.pipelines.definition.places import Place, Problems

# SQLAlchemy accepts more; a URL of another kind is an error only if it looks like a misspelling of one of these.
CHANGES_KINDS = ("sqlite", "postgresql", "postgres")
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
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        if changes_of(end) is not None:
            check_transactions(end, pipeline, problems)
    for source in pipeline.sources:
        if isinstance(source.origin, JdbcOrigin) and not source.origin.url.startswith("jdbc:"):
            problems.error(
                place_of(source, "jdbc", "url"),
                f"url of source '{source.name}' is not a JDBC URL",
                "write jdbc:postgresql://host/name, jdbc:sqlite:file.db, or another URL that starts with jdbc:",
            )


def check_transactions(end: Sink | View, pipeline: Pipeline, problems: Problems) -> None:
    """Checks that change data is applied by a database whose SQL is known to do it."""
    if isinstance(end, Sink) and not isinstance(end.target, TableTarget):
        return
    own = end.target.url if isinstance(end, Sink) and isinstance(end.target, TableTarget) else getattr(end, "url", None)
    kind = (own or pipeline.warehouse or "sqlite:").partition(":")[0].partition("+")[0]
    if kind in KINDS and kind not in CHANGES_KINDS:
        problems.error(
            place_of(end, "changes"),
            f"changes of '{end.name}' cannot be applied to {kind}",
            "use SQLite or PostgreSQL: url: postgresql://user:password@host/name",
        )


def check_url(url: str, what: str, place: Place, problems: Problems) -> None:
    kind = url.partition("://")[0].partition("+")[0]
    if url.startswith("jdbc:"):
        problems.error(place, f"{what} is a JDBC URL", f"tables and views take SQLAlchemy URLs: {FORMS}")
    elif "://" not in url:
        problems.error(place, f"{what} '{url}' is not a URL", f"write {FORMS}")
    elif kind not in KINDS and nearest(kind, KINDS) is not None:
        problems.error(place, f"{what} is of the unknown kind '{kind}'", f"did you mean '{nearest(kind, KINDS)}'?")
