"""The files of the wheel that browsers load: read once, kept in memory, and also compressed."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

    from starlette.requests import Request

AGE_S = 86_400  # their addresses change with their contents
LEAST_COMPRESSED_BYTES = 500
STYLESHEETS = {  # a page has one, of these files: each more would need another connection before the first paint
    "console.css": ("console.css", "vendor/uplot.min.css", "live.css"),
    "access.css": ("console.css", "access.css"),
}
MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class AssetFile:
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
