"""Authentication over the wire: the order of requests, Kafka's errors, sessions that end, tokens."""

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import scramp

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.security.scram_credentials import ScramMechanism, salted_password
from tests.server.sasl_broker import SaslBroker, sasl_broker
from tests.wire import WireClient, encode_request

ALICE = b"\0alice\0alice secret"
SHORT = b"\0b\0b"
SALT = b"salt of sixteen."
VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")


@pytest.fixture(scope="module")
def secured() -> Iterator[SaslBroker]:
    with sasl_broker(listener__name__sasl_plaintext__plain__connections__max__reauth__ms="600000") as running:
        yield running


@pytest.fixture
def wire(secured: SaslBroker) -> Iterator[WireClient]:
    with WireClient(secured.sasl_port) as client:
        yield client


def handshake(client: WireClient, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
    return client.call(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, version)


def authenticate(client: WireClient, token: bytes = ALICE, version: int = 2) -> SaslAuthenticateResponse:
    return client.call(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, version)


def metadata(client: WireClient) -> MetadataResponse:
    return client.call(MetadataRequest(topics=[]), MetadataResponse, 12)


def is_closed(client: WireClient) -> bool:
    try:
        return client.socket.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_token_without_a_header_may_be_shorter_than_one(secured: SaslBroker) -> None:
    with WireClient(secured.sasl_port) as wire:
        handshake(wire, version=0)
        wire.socket.sendall(struct.pack(">i", len(SHORT)) + SHORT)
        assert wire.socket.recv(4) == bytes(4)
        assert metadata(wire).brokers


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0\x12\0\0\0\0"])
def test_a_request_shorter_than_its_header_closes_the_connection(wire: WireClient, frame: bytes) -> None:
    wire.socket.sendall(struct.pack(">i", len(frame)) + frame)
    assert is_closed(wire)


def test_a_listener_without_sasl_answers_that_the_state_is_illegal(secured: SaslBroker) -> None:
    with WireClient(secured.plain_port) as wire:
        assert handshake(wire).error_code == ErrorCode.ILLEGAL_SASL_STATE
        answer = authenticate(wire)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert answer.error_message == "SaslAuthenticate request received after successful authentication"
        assert metadata(wire).brokers


def test_a_session_is_renewed_by_authenticating_again(wire: WireClient) -> None:
    handshake(wire)
    authenticate(wire)
    assert handshake(wire).error_code == ErrorCode.NONE
    assert authenticate(wire).session_lifetime_ms == 600_000
    assert metadata(wire).brokers
    assert handshake(wire).error_code == ErrorCode.ILLEGAL_SASL_STATE  # within a second
    assert metadata(wire).brokers


def test_an_expired_session_is_closed_at_the_next_request() -> None:
    with sasl_broker(connections__max__reauth__ms="1") as secured, WireClient(secured.sasl_port) as wire:
        handshake(wire)
        assert authenticate(wire).session_lifetime_ms == 1
        wire.socket.sendall(encode_request(VERSIONS, 3) * 1000)  # one of them comes later than a millisecond
        received = 1
        while received:
            try:
                received = len(wire.socket.recv(1 << 20))
            except ConnectionResetError:
                break


def test_scram_credentials_are_stored_and_used(secured: SaslBroker) -> None:
    salted = salted_password(ScramMechanism.SCRAM_SHA_512, "secret", SALT, 5000)
    upsertions = [
        ScramCredentialUpsertion(name=name, mechanism=2, iterations=iterations, salt=SALT, salted_password=salted)
        for name, iterations in (("carol", 5000), ("dave", 100))
    ]
    with WireClient(secured.plain_port) as admin:
        answer = admin.call(
            AlterUserScramCredentialsRequest(upsertions=upsertions), AlterUserScramCredentialsResponse, 0
        )
        assert [(each.user, each.error_code, each.error_message) for each in answer.results] == [
            ("carol", ErrorCode.NONE, None),
            ("dave", ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        ]
        asked = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in ("carol", "dave")])
        described = admin.call(asked, DescribeUserScramCredentialsResponse, 0)
        assert [
            (each.user, each.error_code, [(info.mechanism, info.iterations) for info in each.credential_infos])
            for each in described.results
        ] == [("carol", ErrorCode.NONE, [(2, 5000)]), ("dave", ErrorCode.RESOURCE_NOT_FOUND, [])]
    with WireClient(secured.sasl_port) as wire:
        log_in(wire, "SCRAM-SHA-512", "carol", "secret")
        assert metadata(wire).brokers


def test_scram_by_tokens_without_headers(secured: SaslBroker) -> None:
    salted = salted_password(ScramMechanism.SCRAM_SHA_512, "secret", SALT, 5000)
    user = ScramCredentialUpsertion(name="carol", mechanism=2, iterations=5000, salt=SALT, salted_password=salted)
    with WireClient(secured.plain_port) as admin:
        admin.call(AlterUserScramCredentialsRequest(upsertions=[user]), AlterUserScramCredentialsResponse, 0)
    for password in ("secret", "another one"):
        with WireClient(secured.sasl_port) as wire:
            client = scramp.ScramClient(["SCRAM-SHA-512"], "carol", password)
            handshake(wire, "SCRAM-SHA-512", version=0)
            client.set_server_first(send_raw(wire, client.get_client_first()))
            wire.socket.sendall(raw(client.get_client_final()))
            if password == "secret":
                client.set_server_final(read_raw(wire))
                assert metadata(wire).brokers
            else:
                assert is_closed(wire)
    with WireClient(secured.sasl_port) as wire:
        handshake(wire, "SCRAM-SHA-512", version=0)
        send_raw(wire, scramp.ScramClient(["SCRAM-SHA-512"], "carol", "secret").get_client_first())
        wire.socket.sendall(raw("\x00garbage") + raw("more"))
        assert is_closed(wire)


def raw(token: str) -> bytes:
    return struct.pack(">i", len(token)) + token.encode()


def read_raw(wire: WireClient) -> str:
    answer = wire.read_frame()
    assert answer is not None
    return bytes(answer).decode()


def send_raw(wire: WireClient, token: str) -> str:
    wire.socket.sendall(raw(token))
    return read_raw(wire)


def log_in(wire: WireClient, mechanism: str, user: str, password: str) -> None:
    client = scramp.ScramClient([mechanism], user, password)
    handshake(wire, mechanism)
    client.set_server_first(bytes(authenticate(wire, client.get_client_first().encode()).auth_bytes).decode())
    client.set_server_final(bytes(authenticate(wire, client.get_client_final().encode()).auth_bytes).decode())


def test_a_token_authenticates_its_owner_who_may_not_ask_for_tokens_with_it(secured: SaslBroker) -> None:
    refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with WireClient(secured.plain_port) as wire:
        created = wire.call(CreateDelegationTokenRequest(max_lifetime_ms=-1), CreateDelegationTokenResponse, 3)
        assert (created.error_code, created.expiry_timestamp_ms) == (refused, -1)
    with WireClient(secured.sasl_port) as owner:
        handshake(owner)
        authenticate(owner)
        created = owner.call(CreateDelegationTokenRequest(max_lifetime_ms=-1), CreateDelegationTokenResponse, 3)
        assert (created.error_code, created.principal_name) == (ErrorCode.NONE, "alice")
        described = owner.call(DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse, 3)
        assert [token.token_id for token in described.tokens] == [created.token_id]
        with WireClient(secured.sasl_port) as bearer:
            last = token_log_in(bearer, created.token_id, bytes(created.hmac))
            assert last.error_code == ErrorCode.NONE
            assert 0 < last.session_lifetime_ms <= 24 * 3600 * 1000
            again = bearer.call(CreateDelegationTokenRequest(max_lifetime_ms=-1), CreateDelegationTokenResponse, 3)
            assert (again.error_code, again.principal_name) == (refused, "alice")
        expired = owner.call(
            ExpireDelegationTokenRequest(hmac=created.hmac, expiry_time_period_ms=-1), ExpireDelegationTokenResponse, 2
        )
        assert expired.error_code == ErrorCode.NONE
        with WireClient(secured.sasl_port) as bearer:
            last = token_log_in(bearer, created.token_id, bytes(created.hmac))
            assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def token_log_in(wire: WireClient, token_id: str, hmac: bytes) -> SaslAuthenticateResponse:
    from tests.security.sasl.test_scram import sign

    handshake(wire, "SCRAM-SHA-256")
    bare = f"n={token_id},r=clientnonce,tokenauth=true"
    challenge = bytes(authenticate(wire, b"n,," + bare.encode()).auth_bytes).decode()
    return authenticate(wire, sign(bare, challenge, base64.b64encode(hmac).decode()))


def test_failures_are_logged_without_passwords() -> None:
    with sasl_broker() as secured:
        with WireClient(secured.sasl_port) as wire:
            handshake(wire)
            authenticate(wire, b"\0alice\0other words")
            assert is_closed(wire)
        secured.process.stop()
        assert "wrong password 'alice'" in secured.process.output
        assert "alice secret" not in secured.process.output
        assert "other words" not in secured.process.output


def test_logins_are_in_the_audit_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with sasl_broker(audit__log__path=str(path)) as secured:
        for password in ("alice secret", "wrong secret"):
            with WireClient(secured.sasl_port) as client:
                handshake(client)
                authenticate(client, b"\0alice\0" + password.encode())
    logins = [json.loads(line) for line in path.read_text().splitlines()]
    shown = [(each["outcome"], each["principal"], each["operation"], each["mechanism"]) for each in logins]
    assert shown == [("done", "User:alice", "Login", "PLAIN"), ("failed", "User:ANONYMOUS", "Login", "PLAIN")]
    assert logins[0]["listener"] == "SASL_PLAINTEXT"
    assert "secret" not in path.read_text()
