"""What the pages with a searchable, paged table have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from odradek.console.cluster.connection import Failure
from odradek.console.pages.forms import parse_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from odradek.console.cluster.connection import Cluster
    from odradek.console.context import Console

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_SEARCH = 200
LARGEST_PAGE_NUMBER = 1_000_000


def search_text(request: Request) -> str:
    return request.query_params.get("q", "")[:LONGEST_SEARCH]


def page_number(request: Request) -> int:
    """FormError unless the parameter is a whole number, or absent."""
    return parse_number(request.query_params.get("page", ""), "page", 1, LARGEST_PAGE_NUMBER, 1)


def choose_template(request: Request, name: str, table: str) -> str:
    """The template of the table alone if the browser replaces the element `table`, otherwise that of the page."""
    return f"{name}_table.html" if request.headers.get("hx-target") == table else f"{name}.html"


async def list_or_denial(
    console: Console, empty: T, function: Callable[Concatenate[Cluster, P], T], *arguments: P.args, **named: P.kwargs
) -> tuple[T, str]:
    """The list with an empty message, or the empty list and why the cluster refused: the page shows the message."""
    try:
        return await console.call(function, *arguments, **named), ""
    except Failure as failure:
        return empty, failure.message
