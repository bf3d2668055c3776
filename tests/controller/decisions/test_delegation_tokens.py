"""Delegation tokens: creation, renewal, expiry and removal with the checks of Kafka, in simulated time."""

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.controller.decisions import delegation_tokens as token_decisions
from odradek.controller.decisions.delegation_tokens import (
    ExpiredTokenRemoval,
    NewToken,
    TokenExpiry,
    TokenRenewal,
    TokenRequest,
    TokenResult,
    decide_token_request,
)
from odradek.controller.decisions.topics import Cluster
from odradek.metadata.image import MetadataImage
from odradek.metadata.snapshot import empty_image
from odradek.protocol.errors import ErrorCode
from odradek.security import delegation_tokens
from odradek.security.delegation_tokens import token_hmac
from odradek.security.principals import Principal
from tests.metadata.inline_host import CountingEntropy

ALICE, BOB, EVE = Principal("User", "alice"), Principal("User", "bob"), Principal("User", "eve")
SETTINGS = {
    "delegation.token.secret.key": "key",
    "delegation.token.max.lifetime.ms": "1000",
    "delegation.token.expiry.time.ms": "300",
}
HMAC = b"?" * 64


class Tokens:
    def __init__(self, properties: dict[str, str] = SETTINGS) -> None:
        self.image: MetadataImage = empty_image("c")
        self._config = BrokerConfig.from_properties(properties)
        self._entropy = CountingEntropy()

    def ask(self, request: TokenRequest) -> TokenResult:
        cluster = Cluster(self.image, self._config, self._entropy.random_below, self._entropy.uuid)
        result, changes = decide_token_request(request, cluster)
        self.image = self.image.apply_all(changes)
        return result

    def create(self, max_lifetime_ms: int = -1) -> TokenResult:
        return self.ask(NewToken(ALICE, ALICE, (BOB,), max_lifetime_ms, 100))


def test_a_token_has_the_configured_times_and_a_derived_hmac() -> None:
    tokens = Tokens()
    result = tokens.create()
    token = result.token
    assert token is not None
    assert (token.issued_ms, token.expires_ms, token.max_ms) == (100, 400, 1100)
    assert result.hmac == token_hmac("key", token.token_id)
    assert tokens.image.users.delegation_tokens == {token.token_id: token}


@pytest.mark.parametrize(("asked_ms", "max_ms", "expires_ms"), [(200, 300, 300), (5000, 1100, 400), (0, 1100, 400)])
def test_a_client_may_ask_for_a_shorter_life(asked_ms: int, max_ms: int, expires_ms: int) -> None:
    token = Tokens().create(asked_ms).token
    assert token is not None
    assert (token.max_ms, token.expires_ms) == (max_ms, expires_ms)


@pytest.mark.parametrize(
    "request_", [NewToken(ALICE, ALICE, (), -1, 0), TokenRenewal(HMAC, ALICE, -1, 0), TokenExpiry(HMAC, ALICE, -1, 0)]
)
def test_without_a_secret_there_are_no_tokens(request_: TokenRequest) -> None:
    assert Tokens({}).ask(request_).error is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_renewers_are_users() -> None:
    result = Tokens().ask(NewToken(ALICE, ALICE, (Principal("Group", "x"),), -1, 100))
    assert result.error is ErrorCode.INVALID_PRINCIPAL_TYPE


def test_the_names_of_renewers_are_bounded_together() -> None:
    long = tuple(Principal("User", f"{number}".rjust(1000, "x")) for number in range(17))
    assert Tokens().ask(NewToken(ALICE, ALICE, long, -1, 100)).error is ErrorCode.INVALID_REQUEST
    assert Tokens().ask(NewToken(ALICE, ALICE, long[:16], -1, 100)).error is ErrorCode.NONE
    short = tuple(Principal("User", f"{number}") for number in range(1000))
    assert Tokens().ask(NewToken(ALICE, ALICE, short, -1, 100)).error is ErrorCode.NONE


@pytest.mark.parametrize("renewer", [ALICE, BOB])
def test_owner_and_renewers_renew_up_to_the_longest_life(renewer: Principal) -> None:
    tokens = Tokens()
    hmac = tokens.create().hmac
    assert tokens.ask(TokenRenewal(hmac, renewer, -1, 200)).expires_ms == 500
    assert tokens.ask(TokenRenewal(hmac, renewer, 100, 300)).expires_ms == 400
    assert tokens.ask(TokenRenewal(hmac, renewer, 9999, 400)).expires_ms == 700
    assert tokens.ask(TokenRenewal(hmac, renewer, -1, 690)).expires_ms == 990
    assert tokens.ask(TokenRenewal(hmac, renewer, -1, 900)).expires_ms == 1100


def test_refusals_of_renewals() -> None:
    tokens = Tokens()
    hmac = tokens.create().hmac
    assert tokens.ask(TokenRenewal(HMAC, ALICE, -1, 200)).error is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert tokens.ask(TokenRenewal(hmac, EVE, -1, 200)).error is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert tokens.ask(TokenRenewal(hmac, ALICE, -1, 401)).error is ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_expiry_moves_the_end_or_removes_the_token() -> None:
    tokens = Tokens()
    hmac = tokens.create().hmac
    assert tokens.ask(TokenExpiry(hmac, EVE, -1, 200)).error is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert tokens.ask(TokenExpiry(hmac, BOB, 50, 200)).expires_ms == 250
    assert tokens.ask(TokenExpiry(hmac, BOB, 50, 251)).error is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert tokens.ask(TokenExpiry(hmac, ALICE, -1, 251)).expires_ms == 251
    assert not tokens.image.users.delegation_tokens
    assert tokens.ask(TokenExpiry(hmac, ALICE, -1, 252)).error is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_expired_tokens_are_removed() -> None:
    tokens = Tokens()
    tokens.create()
    lasting = tokens.create()
    tokens.ask(TokenRenewal(lasting.hmac, ALICE, -1, 350))
    tokens.ask(ExpiredTokenRemoval(401))
    assert lasting.token is not None
    assert list(tokens.image.users.delegation_tokens) == [lasting.token.token_id]


def test_the_tokens_of_an_owner_and_of_all_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_decisions, "MOST_TOKENS_OF_AN_OWNER", 2)
    monkeypatch.setattr(token_decisions, "MOST_TOKENS", 3)
    tokens = Tokens()
    kept = [tokens.create() for _ in range(2)]
    assert tokens.create().error is ErrorCode.POLICY_VIOLATION
    assert tokens.ask(NewToken(BOB, BOB, (), -1, 100)).error is ErrorCode.NONE
    assert tokens.ask(NewToken(EVE, EVE, (), -1, 100)).error is ErrorCode.POLICY_VIOLATION
    assert tokens.ask(TokenExpiry(kept[0].hmac, ALICE, -1, 100)).error is ErrorCode.NONE
    assert tokens.create().error is ErrorCode.NONE


def test_a_token_is_found_without_deriving_the_others_again(monkeypatch: pytest.MonkeyPatch) -> None:
    derived: list[str] = []

    def counted(secret: str, token_id: str) -> bytes:
        derived.append(token_id)
        return token_hmac(secret, token_id)

    monkeypatch.setattr(delegation_tokens, "token_hmac", counted)
    tokens = Tokens()
    hmacs = [tokens.create().hmac for _ in range(20)]
    for hmac in hmacs:
        assert tokens.ask(TokenRenewal(hmac, ALICE, -1, 200)).error is ErrorCode.NONE
    assert len(derived) == 20
    assert tokens.ask(TokenRenewal(HMAC, ALICE, -1, 200)).error is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
