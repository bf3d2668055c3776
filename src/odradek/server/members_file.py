"""The file that says which users are in which groups and roles, for the permissions of streams. It is read again when
it has changed. A file that cannot be read is ignored; the previous members stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigError
from odradek.host.logs import get_logger
from odradek.security.acls.stream_permissions import parse_members

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.security.acls.stream_permissions import Members

log = get_logger(__name__)

SETTING = "groups.file"
INTERVAL_MS = 10_000.0


class MembersFile:
    """A task of housekeeping. `after_change` is called with the members when they have changed."""

    name = "groups of users"

    def __init__(self, path: str, host: Host) -> None:
        self._path = path
        self._host = host
        self._content = b""
        self.after_change: Callable[[Members], None] = lambda _: None

    def load(self) -> Members:
        """At the start, when a file that cannot be read is an error. Blocks."""
        try:
            self._content = self._host.disk.read_file(self._path)
            return parse_members(self._content.decode())
        except (OSError, ValueError) as problem:
            raise ConfigError(SETTING, self._path, str(problem)) from problem

    def interval_ms(self, config: BrokerConfig) -> float:  # noqa: ARG002 - the interface's signature
        return INTERVAL_MS

    async def run(self, now_ms: int) -> None:  # noqa: ARG002
        try:
            content = await self._host.workers.run(self._host.disk.read_file, self._path)
            if content == self._content:
                return
            members = parse_members(content.decode())
        except (OSError, ValueError) as problem:
            log.error("the groups of users could not be read; the last ones stay", path=self._path, reason=problem)
            return
        self._content = content
        log.info("the groups of users have changed", path=self._path)
        self.after_change(members)

    async def stop(self) -> None:
        pass
