"""TLS of one listener: wraps its connections, and names the principals of their certificates.

New connections use the newest context; open ones continue with theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.host.tls_connection import TlsConnection
from odradek.security.principals import ANONYMOUS, Principal
from odradek.security.tls.contexts import listener_context
from odradek.security.tls.distinguished_names import subject_name
from odradek.security.tls.principal_mapping import PrincipalMapping
from odradek.server.tls_context import RefreshedContext

if TYPE_CHECKING:
    import asyncio

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.host.tls_connection import TlsResources
    from odradek.server.connection import Connection

log = get_logger(__name__)

REPORT_INTERVAL_MS = 1_000.0


class ListenerTls:
    def __init__(self, listener: str, config: BrokerConfig, host: Host, resources: TlsResources) -> None:
        self.listener = listener
        self.context = RefreshedContext(f"listener {listener}", host, listener_context)
        self._clock = host.clock
        self._resources = resources
        self._has_sasl = config.listener_protocols[listener].has_sasl
        self._mapping = PrincipalMapping(config.principal_mapping_rules(listener))
        self._failures = 0
        self._next_report_ms = 0.0

    def wrap(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> TlsConnection:
        return TlsConnection(
            connection,
            self.context.current,
            self._resources,
            loop,
            on_secured=connection.connection_secured,
            on_failed=lambda reason: self._report_failure(connection.client_host, reason),
        )

    def principal_of(self, certificate: bytes | None) -> Principal:
        """The principal of a certificate. Without a certificate, and with SASL, which authenticates the client itself,
        it is the anonymous one. `ValueError` if no rule maps the certificate."""
        if certificate is None or self._has_sasl:
            return ANONYMOUS
        return Principal(name=self._mapping.name_of(subject_name(certificate)))

    def _report_failure(self, client: str, reason: str) -> None:
        """One line a second at most: a peer without a certificate can connect often."""
        self._failures += 1
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_report_ms:
            self._next_report_ms = now_ms + REPORT_INTERVAL_MS
            log.info("TLS failed", listener=self.listener, client=client, reason=reason, failures=self._failures)
