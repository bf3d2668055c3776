"""Users that are deleted and tokens that expire while connections and tokens of them are in use, as in Apache Kafka: a
credential is checked when an exchange takes place, and a session lasts as long as it said then."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import scramp

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from odradek.security.scram_credentials import ScramMechanism, salted_password
from tests.server.sasl_broker import SaslBroker, sasl_broker
from tests.server.test_sasl import SALT, is_closed, log_in, metadata, token_log_in
from tests.waiting import eventually
from tests.wire import WireClient

OWNER, RENEWER, PASSWORD = "olga", "rene", "secret"
SCRAM = ScramMechanism.SCRAM_SHA_512
SOON_MS = 500


@pytest.fixture(scope="module")
def secured() -> Iterator[SaslBroker]:
    with sasl_broker() as running:
        yield running


@pytest.fixture
def admin(secured: SaslBroker) -> Iterator[WireClient]:
    with WireClient(secured.plain_port) as client:
        yield client


def add(admin: WireClient, *users: str) -> None:
    salted = salted_password(SCRAM, PASSWORD, SALT, 4096)
    upsertions = [
        ScramCredentialUpsertion(name=user, mechanism=2, iterations=4096, salt=SALT, salted_password=salted)
        for user in users
    ]
    alter(admin, AlterUserScramCredentialsRequest(upsertions=upsertions))


def remove(admin: WireClient, *users: str) -> None:
    deletions = [ScramCredentialDeletion(name=user, mechanism=2) for user in users]
    alter(admin, AlterUserScramCredentialsRequest(deletions=deletions))


def alter(admin: WireClient, request: AlterUserScramCredentialsRequest) -> None:
    answer = admin.call(request, AlterUserScramCredentialsResponse, 0)
    assert {each.error_code for each in answer.results} == {ErrorCode.NONE}


def new_token(owner: WireClient) -> CreateDelegationTokenResponse:
    renewer = CreatableRenewers(principal_type="User", principal_name=RENEWER)
    request = CreateDelegationTokenRequest(max_lifetime_ms=-1, renewers=[renewer])
    created = owner.call(request, CreateDelegationTokenResponse, 3)
    assert created.error_code == ErrorCode.NONE
    return created


def expire(owner: WireClient, hmac: bytes, period_ms: int) -> int:
    """When the token ends, by the clock of this machine."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    response = owner.call(request, ExpireDelegationTokenResponse, 2)
    assert response.error_code == ErrorCode.NONE
    return response.expiry_timestamp_ms


@contextmanager
def log_in_as(secured: SaslBroker, user: str) -> Iterator[WireClient]:
    with WireClient(secured.sasl_port) as client:
        log_in(client, "SCRAM-SHA-512", user, PASSWORD)
        yield client


def test_a_token_outlives_its_owner_and_its_renewer(secured: SaslBroker, admin: WireClient) -> None:
    """Their open connections are served, and may renew and end the token; new ones are refused."""
    add(admin, OWNER, RENEWER)
    with log_in_as(secured, OWNER) as owner, log_in_as(secured, RENEWER) as renewer:
        token = new_token(owner)
        hmac = bytes(token.hmac)
        remove(admin, OWNER, RENEWER)
        for user in (OWNER, RENEWER):
            with pytest.raises(scramp.ScramException), log_in_as(secured, user):
                pass
        with WireClient(secured.sasl_port) as bearer:
            assert token_log_in(bearer, token.token_id, hmac).error_code == ErrorCode.NONE
            assert metadata(bearer).brokers
            renewed = renewer.call(
                RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=-1), RenewDelegationTokenResponse, 2
            )
            assert renewed.error_code == ErrorCode.NONE
            expire(owner, hmac, -1)
            assert metadata(bearer).brokers, "the session lasts as long as the token would have"
        with WireClient(secured.sasl_port) as bearer:
            assert token_log_in(bearer, token.token_id, hmac).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_session_ends_with_its_token_and_cannot_be_renewed_by_it(secured: SaslBroker, admin: WireClient) -> None:
    add(admin, OWNER)
    with log_in_as(secured, OWNER) as owner:
        token = new_token(owner)
        hmac = bytes(token.hmac)
        with WireClient(secured.sasl_port) as silent, WireClient(secured.sasl_port) as busy:
            ends_at_ms = expire(owner, hmac, SOON_MS)
            for bearer in (silent, busy):
                assert 0 < token_log_in(bearer, token.token_id, hmac).session_lifetime_ms <= SOON_MS
            eventually(lambda: is_over(busy))
            eventually(lambda: time.time() * 1000 > ends_at_ms)  # a session may end a millisecond before its token
            renewed = token_log_in(silent, token.token_id, hmac)
            assert renewed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert is_closed(silent)
    remove(admin, OWNER)


def is_over(client: WireClient) -> bool:
    """Whether a request closes the connection, instead of an answer."""
    try:
        return not metadata(client).brokers
    except OSError:
        return True
