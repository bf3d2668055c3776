"""kazoo's client as a session uses it: made from the settings, without a call that blocks, its errors as those of
`host/zookeeper`. The only module that imports kazoo, which is an extra."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL

from odradek.host.zookeeper import (
    BadVersion,
    ConnectionLost,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    NotPermitted,
    SessionExpired,
    ZooKeeperError,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from odradek.host.zookeeper import ZooKeeperSettings, ZooKeeperTls

LONGEST_RECONNECT_PAUSE_S = 1.0


class _WakeUpSocket:
    """The end of a socket pair to which every request writes a byte, so that kazoo's thread looks at its queue. The
    thread reads only while it is connected; a socket that is full wakes it as well as one more byte would."""

    def __init__(self, writer: socket.socket) -> None:
        writer.setblocking(False)
        self._writer = writer

    def send(self, data: bytes) -> None:
        with suppress(BlockingIOError):
            self._writer.send(data)

    def close(self) -> None:
        self._writer.close()


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Reports the end of the thread that keeps the connection. kazoo ends it after an exception that it does not
    expect, or when a connection is closed while it is authenticated, and does not start it again."""

    def __init__(self, report_end: Callable[[Exception | None], None]) -> None:
        super().__init__()
        self._report_end = report_end

    def spawn(self, func: Callable[..., None], *args: Any, **kwargs: Any) -> Any:
        if isinstance(getattr(func, "__self__", None), ConnectionHandler):
            return super().spawn(self._keep_connection, func)
        return super().spawn(func, *args, **kwargs)

    def _keep_connection(self, run: Callable[[], None]) -> None:
        problem: Exception | None = None
        try:
            run()
        except Exception as raised:
            problem = raised
        self._report_end(problem)

    def create_socket_pair(self) -> tuple[Any, _WakeUpSocket]:
        reader, writer = super().create_socket_pair()
        return reader, _WakeUpSocket(writer)


def new_client(servers: str, settings: ZooKeeperSettings, report_end: Callable[[Exception | None], None]) -> Any:
    """A client that is not started. `report_end` is called on its last thread, once it has ended: with the exception
    that ended it, or None if it was stopped or not authenticated. `ZooKeeperError` when the settings cannot be
    used."""
    logger = logging.getLogger("kazoo")
    logger.setLevel(logging.ERROR)  # changes of the session are logged by the session
    handler = _Handler(report_end)
    scheme, _, credential = settings.auth.partition(":")
    user, _, password = credential.partition(":")
    try:
        return KazooClient(
            hosts=servers,
            timeout=settings.session_timeout_ms / 1000,
            handler=handler,
            connection_retry=KazooRetry(
                max_tries=-1, delay=0.05, max_delay=LONGEST_RECONNECT_PAUSE_S, sleep_func=handler.sleep_func
            ),
            auth_data=[(scheme, credential)] if scheme == "digest" else None,
            sasl_options={"mechanism": "DIGEST-MD5", "username": user, "password": password}
            if scheme == "sasl"
            else None,
            default_acl=CREATOR_ALL_ACL if settings.restricts_access else None,  # the nodes hold credentials
            logger=logger,
            **_tls_options(settings.tls),
        )
    except ValueError as problem:
        raise ZooKeeperError(f"zookeeper.connect={settings.connect} is not a list of host:port: {problem}") from problem


def _tls_options(tls: ZooKeeperTls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    return {
        "use_ssl": True,
        "verify_certs": True,
        "check_hostname": tls.checks_host_name,
        "ca": tls.trusted,
        "certfile": tls.key_and_certificate,
        "keyfile": tls.key_and_certificate,
        "keyfile_password": tls.key_password,
    }


def stop(client: Any) -> None:
    client.stop()
    client.close()


_ERRORS: dict[type[Exception], type[ZooKeeperError]] = {
    exceptions.NoNodeError: NoNode,
    exceptions.NodeExistsError: NodeExists,
    exceptions.BadVersionError: BadVersion,
    exceptions.NotEmptyError: NotEmpty,
    exceptions.NoChildrenForEphemeralsError: EphemeralParent,
    exceptions.NoAuthError: NotPermitted,
    exceptions.AuthFailedError: NotPermitted,
    exceptions.InvalidACLError: NotPermitted,
    exceptions.SessionClosedRequireSaslError: NotPermitted,
    exceptions.ConnectionLoss: ConnectionLost,
    exceptions.SessionMovedError: ConnectionLost,
    exceptions.OperationTimeoutError: ConnectionLost,
    # kazoo's own end; a session that this process has closed takes no requests.
    exceptions.ConnectionClosedError: ConnectionLost,
    exceptions.SessionExpiredError: SessionExpired,
}


def known_error(error: Exception) -> ZooKeeperError | None:
    kind = _ERRORS.get(type(error))
    return None if kind is None else kind(str(error) or type(error).__name__)
