"""The keys of token issuers (OAUTHBEARER): read on a worker at the start, at intervals, and when a token names a key
that is not known. The event loop only looks keys up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.security.sasl.json_web_tokens import InvalidToken, Keys, MalformedKeys, has_library, parse_keys

if TYPE_CHECKING:
    from odradek.host.host import Host

log = get_logger(__name__)

SHORTEST_INTERVAL_MS = 10_000.0
"""Between two readings because of unknown keys, or because the keys could never be read."""


class IssuerKeys:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._by_url: dict[str, Keys] = {}
        self._read_ms: dict[str, float] = {}  # when each address was read last

    def find(self, url: str) -> Keys:
        keys = self._by_url.get(url)
        if keys is None:
            raise InvalidToken("the keys of the issuer have not been read")
        return keys

    def is_due(self, url: str, interval_ms: float) -> bool:
        """Whether to read the keys again. Without keys every token is refused, so they are read as often as allowed."""
        last_ms = self._read_ms.get(url)
        if url not in self._by_url:
            interval_ms = min(interval_ms, SHORTEST_INTERVAL_MS)
        return last_ms is None or self._host.clock.monotonic_ms() - last_ms >= interval_ms

    async def read(self, url: str) -> None:
        """Keys that cannot be read again stay as they were."""
        self._read_ms[url] = self._host.clock.monotonic_ms()
        try:
            self._by_url[url] = await self._host.workers.run(self._read, url)
        except (OSError, MalformedKeys) as problem:
            log.warning("the keys of the token issuer cannot be read", url=url, reason=problem)

    def _read(self, url: str) -> Keys:
        if not has_library():
            raise MalformedKeys("joserfc is not installed; pip install 'odradek[security]'")
        return parse_keys(self._host.read_document(url))
