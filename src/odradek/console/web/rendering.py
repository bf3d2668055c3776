"""Templates, in which everything is escaped: none marks a value as safe; and the files of the wheel that browsers load,
which are read once, and kept in memory, also compressed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from odradek.console.views import figures
from odradek.console.views.records import json_parts, visible

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from starlette.requests import Request

    from odradek.console.settings import ConsoleSettings
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
    ("examples", "Examples", "/examples"),
    ("access", "Access", "/access"),
)


class Renderer:
    def __init__(self, tokens: Tokens, settings: ConsoleSettings, servers: str, assets_version: str = "") -> None:
        self._tokens = tokens
        self.shows_section: dict[str, Callable[[Request], bool]] = {}  # of sections that are not always shown
        self.state_notice: Callable[[Request], str] = lambda _request: ""  # about the cluster's state on a page
        self._is_https = settings.is_https
        self._notice_key = secrets.token_bytes(32)
        self.environment = Environment(
            loader=FileSystemLoader(str(files("odradek.console").joinpath("templates"))),
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self.environment.filters |= {
            **figures.FILTERS, "json_parts": json_parts, "visible": visible, "query": _query_of,
            "path": lambda text: quote(str(text), safe=""),
        }  # fmt: skip
        self.environment.globals |= {"addresses": servers.split(","), "is_read_only": settings.is_read_only}
        self.environment.globals["assets"] = assets_version
        self._templates = frozenset(self.environment.list_templates())

    def compile_templates(self) -> None:
        """Before a page needs them: compiling takes longer than rendering."""
        for name in self._templates:
            self.environment.get_template(name)

    def page(self, request: Request, template: str, status: int | None = None, **values: Any) -> Response:
        """A page with an error has the status 422, unless another one is given. If the browser replaces the table of a
        page, whose element has the last word of the template's name, only the template of that table is rendered."""
        stem = template.removesuffix(".html")
        if request.headers.get("hx-target") == stem.rpartition("_")[2] and f"{stem}_table.html" in self._templates:
            template = f"{stem}_table.html"
        shows, notice = self.shows_section, self._read_notice(request.cookies.get(FLASH_COOKIE, ""))
        response = HTMLResponse(
            self.environment.get_template(template).render(
                token=self._tokens.token_of(request.state.session),
                notice=notice,
                state_notice=self.state_notice(request),
                theme=chosen if (chosen := request.cookies.get(THEME_COOKIE, "")) in THEMES else "",
                sections=[each for each in SECTIONS if each[0] not in shows or shows[each[0]](request)],
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
            cookie = f"{text}.{self._sign(text)}"
            response.set_cookie(FLASH_COOKIE, cookie, max_age=60, httponly=True, samesite="lax", secure=self._is_https)
        return response

    def _sign(self, text: str) -> str:
        return hmac.new(self._notice_key, text.encode(), hashlib.sha256).hexdigest()

    def _read_notice(self, cookie: str) -> str:
        text, _, signature = cookie.partition(".")
        if not text or not hmac.compare_digest(self._sign(text).encode(), signature.encode()):
            return ""
        return base64.urlsafe_b64decode(text).decode()


def renderer_of(request: Request) -> Renderer:
    return cast("Renderer", request.app.state.renderer)


def _query_of(fields: Mapping[str, object]) -> str:
    return urlencode({name: value for name, value in fields.items() if value not in ("", None)})


def event(name: str, data: Any) -> bytes:
    """A server-sent event; JSON has no line breaks, which would end the event."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


AGE_S = 86_400  # their addresses change with their contents
LEAST_COMPRESSED_BYTES = 500
STYLESHEETS = {  # a page has one, of these files: each more would need another connection before the first paint
    "console.css": ("console.css", "vendor/uplot.min.css", "live.css"),
    "access.css": ("console.css", "access.css"),
}
MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class AssetFile(NamedTuple):
    body: bytes
    compressed: bytes  # empty for a file that is not worth it
    media_type: str
    tag: str


def read_assets() -> dict[str, AssetFile]:
    """By path below /assets/."""
    bodies = {path: each.read_bytes() for path, each in _files_in(files("odradek.console") / "assets")}
    sheets = {path: b"\n".join(bodies[part] for part in parts) for path, parts in STYLESHEETS.items()}
    return {path: _asset(path, body) for path, body in (bodies | sheets).items()}


def version_of(assets: Mapping[str, AssetFile]) -> str:
    """Changes with the assets, so that browsers may keep them."""
    return hashlib.sha256("".join(assets[path].tag for path in sorted(assets)).encode()).hexdigest()[:12]


def _files_in(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files_in(each, f"{prefix}{each.name}/")
        else:
            yield f"{prefix}{each.name}", each


def _asset(path: str, body: bytes) -> AssetFile:
    compressed = gzip.compress(body, mtime=0) if len(body) >= LEAST_COMPRESSED_BYTES else b""
    media_type = MEDIA_TYPES.get(path.rpartition(".")[2], "text/plain")
    return AssetFile(body, compressed, media_type, f'"{hashlib.sha256(body).hexdigest()[:16]}"')


class Assets:
    """Answers requests for assets."""

    def __init__(self, assets: Mapping[str, AssetFile]) -> None:
        self._assets = assets

    async def show(self, request: Request) -> Response:
        asset = self._assets.get(request.path_params["path"])
        if asset is None:
            raise HTTPException(404)
        headers = {"cache-control": f"public, max-age={AGE_S}", "etag": asset.tag, "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == asset.tag:
            return Response(status_code=304, headers=headers)
        if asset.compressed and "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
            return Response(asset.compressed, headers=headers, media_type=asset.media_type)
        return Response(asset.body, headers=headers, media_type=asset.media_type)
