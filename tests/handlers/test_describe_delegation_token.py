"""Which delegation tokens a client sees: those that it owns, has requested for another owner, or may renew."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from odradek.security.principals import Principal
from tests.handlers.brokers import SimulatedBroker

ADMIN, ALICE, BOB = (Principal("User", name) for name in ("admin", "alice", "bob"))


class OnlyTokens:
    """Everyone may create tokens for others, and nothing else."""

    uses_acls = False

    def allows_any(self, *_: object) -> bool:
        return False

    def allows(self, _client: object, operation: object, _resource: object) -> bool:
        return getattr(operation, "name", "") == "CREATE_TOKENS"


@pytest.mark.parametrize(("principal", "is_visible"), [(ADMIN, True), (ALICE, True), (BOB, False)])
@pytest.mark.parametrize("owner", [None, ADMIN, ALICE])
def test_a_token_is_visible_to_its_owner_and_to_its_requester(
    principal: Principal, is_visible: bool, owner: Principal | None
) -> None:
    broker = SimulatedBroker(delegation_token_secret_key="key")
    broker.services.authorizer = OnlyTokens()
    broker.client.principal = ADMIN
    request = CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="alice", max_lifetime_ms=-1
    )
    created = broker.call(request, CreateDelegationTokenResponse)
    assert created.error_code == ErrorCode.NONE
    broker.client.principal = principal
    owners = None
    if owner is not None:
        owners = [DescribeDelegationTokenOwner(principal_type=owner.type, principal_name=owner.name)]
    response = broker.call(DescribeDelegationTokenRequest(owners=owners), DescribeDelegationTokenResponse)
    assert [each.token_id for each in response.tokens] == [created.token_id] * is_visible
    renewal = RenewDelegationTokenRequest(hmac=bytes(created.hmac), renew_period_ms=-1)
    renewed = broker.call(renewal, RenewDelegationTokenResponse).error_code
    assert (renewed == ErrorCode.NONE) is (principal == ALICE)
    broker.close()
