"""SCRAM users and delegation tokens in a cluster: any broker takes the requests, and every broker knows the result."""

from collections.abc import Iterator

import pytest

from odradek.handlers.forwarding import LONGEST_TIMEOUT_MS
from odradek.metadata.users import ScramKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from odradek.security.principals import Principal
from odradek.security.scram_credentials import ScramMechanism
from tests.handlers.forwarding_cluster import TwoBrokers

CONTROLLER, OTHER = 0, 1
UPSERTION = ScramCredentialUpsertion(
    name="alice", mechanism=1, iterations=4096, salt=b"salt of sixteen.", salted_password=b"x" * 32
)


@pytest.fixture
def cluster() -> Iterator[TwoBrokers]:
    brokers = TwoBrokers()
    yield brokers
    brokers.close()


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_any_broker_adds_users_and_knows_them_when_it_answers(cluster: TwoBrokers, node_id: int) -> None:
    request = AlterUserScramCredentialsRequest(upsertions=[UPSERTION])
    answer = cluster.call(node_id, request, AlterUserScramCredentialsResponse)
    assert [(each.user, each.error_code) for each in answer.results] == [("alice", ErrorCode.NONE)]
    key = ScramKey("alice", ScramMechanism.SCRAM_SHA_256)
    assert key in cluster.members[node_id].cache.image.users.scram_credentials
    cluster.run(cluster.settle())
    first, second = (member.cache.image.users for member in cluster.members)
    assert first == second
    assert len(first.stand_in_key) == 32


def test_the_controller_learns_how_the_client_has_authenticated(cluster: TwoBrokers) -> None:
    create = CreateDelegationTokenRequest(max_lifetime_ms=-1)
    renew = RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=-1)
    for principal, error in (
        (Principal("User", "alice"), ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
        (Principal("User", "alice", True), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (Principal(), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    ):
        cluster.client.principal = principal
        created = cluster.call(OTHER, create, CreateDelegationTokenResponse)
        assert (created.error_code, created.principal_name) == (error, principal.name)
        assert cluster.call(OTHER, renew, RenewDelegationTokenResponse).error_code == error


def test_without_a_controller_every_user_gets_an_error(cluster: TwoBrokers) -> None:
    cluster.members[CONTROLLER].is_reachable = False
    asked = cluster.begin(
        OTHER, AlterUserScramCredentialsRequest(upsertions=[UPSERTION]), AlterUserScramCredentialsResponse
    )
    cluster.pass_time(LONGEST_TIMEOUT_MS / 1000 * 2)
    (result,) = asked.result().results
    assert (result.user, result.error_code) == ("alice", ErrorCode.REQUEST_TIMED_OUT)
