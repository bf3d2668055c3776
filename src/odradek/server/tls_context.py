"""One TLS context that is kept up to date with its settings and its files.

A context is made again when its settings change, and when one of its files does. If it cannot be made, the former one
stays in use, and one line is logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.security.tls.store_problem import StoreProblem

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from odradek.host.disk import Disk
    from odradek.host.host import Host
    from odradek.security.tls.settings import TlsSettings

    MakeContext = Callable[[TlsSettings, Callable[[str], bytes]], ssl.SSLContext]

log = get_logger(__name__)

FileVersions = tuple[tuple[str, int, int], ...]


class RefreshedContext:
    """`load` once before connections come, then `refresh`."""

    def __init__(self, purpose: str, host: Host, make: MakeContext) -> None:
        self._purpose = purpose
        self._settings: TlsSettings | None = None
        self._host = host
        self._make = make
        self._versions: FileVersions = ()
        self._context: ssl.SSLContext | None = None
        self._reported = ""

    @property
    def current(self) -> ssl.SSLContext:
        if self._context is None:
            raise RuntimeError("the TLS context is not loaded")
        return self._context

    async def load(self, settings: TlsSettings) -> None:
        """`StoreProblem` if a key or a certificate cannot be used."""
        self._versions, self._context = await self._host.workers.run(self._load, settings)
        self._settings = settings

    async def refresh(self, settings: TlsSettings) -> None:
        """Makes the context again if settings or files have changed. One that cannot be made is tried at each call."""
        versions = await self._host.workers.run(file_versions, settings, self._host.disk)
        if settings == self._settings and versions == self._versions:
            self._reported = ""
            return
        try:
            self._versions, self._context = await self._host.workers.run(self._load, settings)
        except Exception as problem:  # as well as StoreProblem: whatever is wrong with a file, the old context serves
            self._report(problem)
            return
        self._settings = settings
        self._reported = ""
        log.info("certificate replaced", purpose=self._purpose)

    def _report(self, problem: Exception) -> None:
        """Once for each reason."""
        reason = str(problem) if isinstance(problem, StoreProblem) else f"{type(problem).__name__}: {problem}"
        if reason != self._reported:
            self._reported = reason
            log.error("certificate not replaced", purpose=self._purpose, reason=reason)

    async def refusal(self, settings: TlsSettings) -> str | None:
        """Why a context cannot be made with other settings than the present ones."""
        if settings == self._settings:
            return None
        try:
            await self._host.workers.run(self._load, settings)
        except StoreProblem as problem:
            return str(problem)
        except OSError as problem:
            return f"the key store or trust store cannot be read: {problem}"
        return None

    def _load(self, settings: TlsSettings) -> tuple[FileVersions, ssl.SSLContext]:
        versions = file_versions(settings, self._host.disk)  # before they are read: a later change is noticed
        return versions, self._make(settings, self._host.disk.read_file)


def file_versions(settings: TlsSettings, disk: Disk) -> FileVersions:
    """A value that differs when one of the files has changed. Blocks."""
    found = []
    for path in settings.files:
        try:
            found.append((path, disk.modified_ms(path), disk.file_size(path)))
        except OSError:
            found.append((path, -1, -1))
    return tuple(found)
