"""One step of a SASL exchange on a connection, and the end of one that failed: a delay, the answer, the closing.

The delay slows down clients that try passwords, and costs the broker nothing: the connection is not read meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from odradek.handlers.context import CloseConnection
from odradek.protocol.errors import ErrorCode
from odradek.security.audit.events import Action, Actor
from odradek.security.authorizer import CLUSTER_NAME
from odradek.security.sasl.authentication import Times

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.answers import Answer
    from odradek.handlers.context import ClientConnection, Services
    from odradek.host.clock import Clock
    from odradek.security.sasl.authentication import AuthenticateStep, Authentication
    from odradek.security.sasl.outcome import Deferred

R = TypeVar("R")
LOGIN_API = "SaslAuthenticate"
LONGEST_REASON = 300  # characters: a user name in it comes from the client


def times(clock: Clock) -> Times:
    return Times(clock.now_ms(), clock.monotonic_ms())


async def take_later_step(
    deferred: Deferred, token: bytes, connection: ClientConnection, services: Services
) -> AuthenticateStep:
    """The step that a credential had to be computed for."""
    if connection.authentication is None:
        raise RuntimeError("a connection without SASL takes no steps")
    waits_for: Deferred | None = deferred
    while waits_for is not None:
        await waits_for.compute()
        step = take_step(connection.authentication, token, connection, services)
        waits_for = step.deferred
    return step


def take_step(
    authentication: Authentication, token: bytes, connection: ClientConnection, services: Services
) -> AuthenticateStep:
    step = authentication.authenticate(token, times(services.host.clock))
    if authentication.principal is not None:
        connection.principal = authentication.principal
    connection.is_restricted = not authentication.is_unrestricted
    if step.is_complete:
        log_login(connection, services, authentication.mechanism_name)
    return step


def log_login(
    connection: ClientConnection, services: Services, mechanism: str | None, *, failure: str | None = None
) -> None:
    """A line of the audit log, for a success and for a failure."""
    if not services.audit.is_on:
        return
    details: dict[str, object] = {"mechanism": mechanism}
    if failure is not None:
        details["reason"] = failure
    error = None if failure is None else ErrorCode.SASL_AUTHENTICATION_FAILED.name
    actor = Actor(str(connection.principal), connection.host, connection.listener_name, None, LOGIN_API)
    services.audit.authenticated(actor, Action("Login", "Cluster", CLUSTER_NAME, error, details))


def answer_raw_token(
    authentication: Authentication, token: bytes, connection: ClientConnection, services: Services
) -> Answer | Awaitable[Answer]:
    """A token without a request header, after a handshake of version 0. A failure has no answer."""
    step = take_step(authentication, token, connection, services)
    if step.deferred is not None or step.failure is not None:
        return _answer_raw_token_later(step, token, connection, services)
    return _raw_answer(step)


async def _answer_raw_token_later(
    step: AuthenticateStep, token: bytes, connection: ClientConnection, services: Services
) -> Answer:
    if step.deferred is not None:
        step = await take_later_step(step.deferred, token, connection, services)
    if step.failure is not None:
        return await _close_after_failure(step.failure, connection, services)
    return _raw_answer(step)


def _raw_answer(step: AuthenticateStep) -> Answer:
    return [len(step.data).to_bytes(4, "big") + step.data]


async def _close_after_failure(reason: str, connection: ClientConnection, services: Services) -> Answer:
    await fail_authentication(None, reason, connection, services)
    raise CloseConnection("authentication failed")


async def fail_authentication(answer: R, reason: str, connection: ClientConnection, services: Services) -> R:
    """The answer, after the delay. The connection is closed once it is sent."""
    authentication = connection.authentication
    services.authentication_failures.report(
        services.host.clock,
        connection.host,
        listener=connection.listener_name,
        mechanism=None if authentication is None else authentication.mechanism_name,
        reason=reason[:LONGEST_REASON],
    )
    log_login(
        connection,
        services,
        None if authentication is None else authentication.mechanism_name,
        failure=reason[:LONGEST_REASON],
    )
    connection.closes_after_answer = True
    passed = asyncio.Event()
    timer = services.host.clock.call_after(services.config.failed_authentication_delay_ms, passed.set)
    try:
        await passed.wait()
    finally:
        timer.cancel()
    return answer
