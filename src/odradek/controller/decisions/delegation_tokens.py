"""The controller's decisions about delegation tokens (KIP-48), with Kafka's checks in Kafka's order. Pure."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.log.log_directory import encode_uuid
from odradek.metadata.changes import DelegationTokenChanged, DelegationTokenRemoved
from odradek.protocol.errors import ErrorCode
from odradek.security.delegation_tokens import DelegationToken, token_hmac

if TYPE_CHECKING:
    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change
    from odradek.security.principals import Principal

LATEST_MS = 2**63 - 1
NO_TIME = -1
LARGEST_NAME_BYTES = 1024
MOST_RENEWERS = 1000
MOST_RENEWERS_BYTES = 16 << 10
"""Limits the names of a token's renewers: tokens are metadata, and a user without any right may have 1,000 of them."""
MOST_TOKENS = 10_000
MOST_TOKENS_OF_AN_OWNER = 1_000
MOST_REMOVALS = 10_000  # in one commit


@dataclass(frozen=True, slots=True)
class NewToken:
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    max_lifetime_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class TokenRenewal:
    hmac: bytes = field(repr=False)
    requester: Principal
    period_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class TokenExpiry:
    """A negative period removes the token at once."""

    hmac: bytes = field(repr=False)
    requester: Principal
    period_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class ExpiredTokenRemoval:
    """A request of the broker itself, at intervals."""

    now_ms: int


TokenRequest = NewToken | TokenRenewal | TokenExpiry | ExpiredTokenRemoval


@dataclass(frozen=True, slots=True)
class TokenResult:
    """`token` and its `hmac` for a new token; `expires_ms` for a renewal or an expiry."""

    error: ErrorCode = ErrorCode.NONE
    token: DelegationToken | None = None
    hmac: bytes = field(default=b"", repr=False)
    expires_ms: int = NO_TIME


def decide_token_request(request: TokenRequest, cluster: Cluster) -> tuple[TokenResult, list[Change]]:
    if isinstance(request, ExpiredTokenRemoval):
        return TokenResult(), _remove_expired(request, cluster)
    secret = cluster.config.delegation_token_secret_key
    if not secret:
        return TokenResult(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED), []
    if isinstance(request, NewToken):
        return _create(request, cluster, secret)
    token = cluster.image.users.find_token(secret, request.hmac)
    if token is None:
        return TokenResult(ErrorCode.DELEGATION_TOKEN_NOT_FOUND), []
    if isinstance(request, TokenRenewal):
        result, changes = _renew(request, token, cluster)
    else:
        result, changes = _expire(request, token)
    return replace(result, token=token), changes


def _remove_expired(request: ExpiredTokenRemoval, cluster: Cluster) -> list[Change]:
    tokens = cluster.image.users.delegation_tokens.values()
    expired = [token.token_id for token in tokens if token.is_expired(request.now_ms)]
    return [DelegationTokenRemoved(token_id) for token_id in expired[:MOST_REMOVALS]]


def _create(request: NewToken, cluster: Cluster, secret: str) -> tuple[TokenResult, list[Change]]:
    config, now_ms = cluster.config, request.now_ms
    if any(renewer.type != "User" for renewer in request.renewers):
        return TokenResult(ErrorCode.INVALID_PRINCIPAL_TYPE), []
    principals = (request.owner, request.requester, *request.renewers)
    if (
        len(request.renewers) > MOST_RENEWERS
        or any(len(str(each)) > LARGEST_NAME_BYTES for each in principals)
        or sum(len(str(each)) for each in request.renewers) > MOST_RENEWERS_BYTES
    ):
        return TokenResult(ErrorCode.INVALID_REQUEST), []
    users = cluster.image.users
    if (
        len(users.delegation_tokens) >= MOST_TOKENS
        or users.tokens_per_owner.get(request.owner, 0) >= MOST_TOKENS_OF_AN_OWNER
    ):
        return TokenResult(ErrorCode.POLICY_VIOLATION), []
    lifetime_ms = config.delegation_token_max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = min(now_ms + lifetime_ms, LATEST_MS)
    token = DelegationToken(
        encode_uuid(cluster.new_topic_id()),
        request.owner,
        request.requester,
        request.renewers,
        issued_ms=now_ms,
        expires_ms=min(max_ms, now_ms + config.delegation_token_expiry_time_ms),
        max_ms=max_ms,
    )
    return TokenResult(token=token, hmac=token_hmac(secret, token.token_id)), [DelegationTokenChanged(token)]


def _renew(request: TokenRenewal, token: DelegationToken, cluster: Cluster) -> tuple[TokenResult, list[Change]]:
    if token.is_expired(request.now_ms):
        return TokenResult(ErrorCode.DELEGATION_TOKEN_EXPIRED), []
    if not token.may_be_renewed_by(request.requester):
        return TokenResult(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH), []
    period_ms = cluster.config.delegation_token_expiry_time_ms
    if request.period_ms > 0:
        period_ms = min(period_ms, request.period_ms)
    return _with_expiry(token, request.now_ms + period_ms)


def _expire(request: TokenExpiry, token: DelegationToken) -> tuple[TokenResult, list[Change]]:
    if not token.may_be_renewed_by(request.requester):
        return TokenResult(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH), []
    if request.period_ms < 0:
        return TokenResult(expires_ms=request.now_ms), [DelegationTokenRemoved(token.token_id)]
    if token.is_expired(request.now_ms):
        return TokenResult(ErrorCode.DELEGATION_TOKEN_EXPIRED), []
    return _with_expiry(token, request.now_ms + request.period_ms)


def _with_expiry(token: DelegationToken, expires_ms: int) -> tuple[TokenResult, list[Change]]:
    changed = replace(token, expires_ms=min(token.max_ms, expires_ms))
    return TokenResult(expires_ms=changed.expires_ms), [DelegationTokenChanged(changed)]
