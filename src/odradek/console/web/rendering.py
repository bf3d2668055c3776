"""Templates. Everything that is shown is escaped: no template marks a value as safe."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse

from odradek.console.views import figures
from odradek.console.views.records import json_parts, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.web.safety import Tokens

FLASH_COOKIE = "odradek_notice"
THEME_COOKIE = "odradek_theme"  # written by the page
THEMES = ("light", "dark")
LARGEST_NOTICE = 400
SECTIONS = (
    ("overview", "Overview", "/"),
    ("topics", "Topics", "/topics"),
    ("groups", "Groups", "/groups"),
    ("brokers", "Brokers", "/brokers"),
    ("transactions", "Transactions", "/transactions"),
    ("pipelines", "Pipelines", "/pipelines"),
    ("rigs", "Rigs", "/rigs"),
    ("access", "Access", "/access"),
)


class Renderer:
    def __init__(
        self,
        tokens: Tokens,
        *,
        addresses: Sequence[str],
        is_read_only: bool,
        is_https: bool = False,
        assets_version: str = "",
    ) -> None:
        self._tokens = tokens
        self.shows_section: dict[str, Callable[[Request], bool]] = {}  # of sections that are not always shown
        self.state_notice: Callable[[Request], str] = _no_notice  # about the state of the cluster that a page shows
        self._is_https = is_https
        self._notice_key = secrets.token_bytes(32)
        self.environment = Environment(
            loader=FileSystemLoader(str(files("odradek.console").joinpath("templates"))),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters.update(figures.FILTERS)
        self.environment.filters["json_parts"] = json_parts
        self.environment.filters["visible"] = visible
        self.environment.filters["path"] = lambda text: quote(str(text), safe="")
        self.environment.filters["query"] = lambda fields: urlencode(
            {k: v for k, v in fields.items() if v not in ("", None)}
        )
        self.environment.globals.update(addresses=addresses, is_read_only=is_read_only, assets=assets_version)

    def compile_templates(self) -> None:
        """Before a page needs them: compiling takes longer than rendering."""
        for name in self.environment.list_templates():
            self.environment.get_template(name)

    def page(
        self, request: Request, template: str, status: int | None = None, *, table: str = "", **values: Any
    ) -> Response:
        """A page with an error has the status 422, unless another one is given. If the browser replaces the element
        `table`, only the template of that table is rendered."""
        if table and request.headers.get("hx-target") == table:
            template = template.replace(".html", "_table.html")
        notice = self._read_notice(request.cookies.get(FLASH_COOKIE, ""))
        response = HTMLResponse(
            self.environment.get_template(template).render(
                token=self._tokens.token_of(request.state.session),
                notice=notice,
                state_notice=self.state_notice(request),
                theme=chosen if (chosen := request.cookies.get(THEME_COOKIE, "")) in THEMES else "",
                sections=[each for each in SECTIONS if self.shows_section.get(each[0], _always)(request)],
                user=getattr(request.state, "user", ""),
                is_fragment=request.headers.get("hx-request") == "true",
                **values,
            ),
            status or (422 if values.get("error") else 200),
        )
        if notice:
            response.delete_cookie(FLASH_COOKIE, samesite="lax", httponly=True, secure=self._is_https)
        return response

    def fragment(self, template: str, **values: Any) -> str:
        return self.environment.get_template(template).render(**values)

    def redirect(self, location: str, notice: str = "") -> Response:
        """To the page that shows the result of a change, with a sentence that it shows once."""
        response = RedirectResponse(location, 303)
        if notice:
            text = base64.urlsafe_b64encode(notice[:LARGEST_NOTICE].encode()).decode()
            response.set_cookie(
                FLASH_COOKIE,
                f"{text}.{self._sign(text)}",
                max_age=60,
                httponly=True,
                samesite="lax",
                secure=self._is_https,
            )
        return response

    def _sign(self, text: str) -> str:
        return hmac.new(self._notice_key, text.encode(), hashlib.sha256).hexdigest()

    def _read_notice(self, cookie: str) -> str:
        text, _, signature = cookie.partition(".")
        if not text or not hmac.compare_digest(self._sign(text).encode(), signature.encode()):
            return ""
        return base64.urlsafe_b64decode(text).decode()


def render(request: Request, template: str, status: int | None = None, *, table: str = "", **values: Any) -> Response:
    """`Renderer.page` of the application."""
    return _renderer_of(request).page(request, template, status, table=table, **values)


def render_fragment(request: Request, template: str, **values: Any) -> str:
    return _renderer_of(request).fragment(template, **values)


def redirect(request: Request, location: str, notice: str = "") -> Response:
    return _renderer_of(request).redirect(location, notice)


def _renderer_of(request: Request) -> Renderer:
    return cast("Renderer", request.app.state.renderer)


def _always(_request: Request) -> bool:
    return True


def _no_notice(_request: Request) -> str:
    return ""


def event(name: str, data: Any) -> bytes:
    """A server-sent event; JSON has no line breaks, which would end the event."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
