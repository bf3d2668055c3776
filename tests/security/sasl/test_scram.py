"""SCRAM against an implementation that is not ours (scramp), and every message that must not authenticate."""

import base64
import re

import pytest
import scramp
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.security.sasl.outcome import Authenticated, Challenge, Failed, Outcome
from odradek.security.sasl.scram import ScramServer
from odradek.security.scram_credentials import MECHANISMS_BY_NAME, ScramMechanism
from tests.example_counts import examples
from tests.security.sasl.scram_source import ScramUsers

USERS = ScramUsers(alice="secret", **{"a=b,c": "odd"})
MECHANISMS = sorted(MECHANISMS_BY_NAME)


def server(name: str = "SCRAM-SHA-256", nonce: str = "servernonce") -> ScramServer:
    return ScramServer(MECHANISMS_BY_NAME[name], USERS, nonce)


def client(user: str, password: str, name: str = "SCRAM-SHA-256") -> scramp.ScramClient:
    return scramp.ScramClient([name], user, password)


def exchange(side: scramp.ScramClient, target: ScramServer) -> Outcome:
    challenge = target.evaluate(side.get_client_first().encode())
    assert isinstance(challenge, Challenge)
    side.set_server_first(challenge.data.decode())
    outcome = target.evaluate(side.get_client_final().encode())
    if isinstance(outcome, Authenticated):
        side.set_server_final(outcome.data.decode())  # it checks the server's signature
    return outcome


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "secret"), ("a=b,c", "odd")])
def test_the_right_password_authenticates(name: str, user: str, password: str) -> None:
    outcome = exchange(client(user, password, name), server(name))
    assert isinstance(outcome, Authenticated)
    assert (outcome.user, outcome.expires_ms, outcome.is_token) == (user, None, False)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_wrong_password_and_an_unknown_user_fail_alike(name: str) -> None:
    wrong = exchange(client("alice", "other", name), server(name))
    unknown = exchange(client("nobody", "other", name), server(name))
    assert isinstance(wrong, Failed)
    assert isinstance(unknown, Failed)
    assert wrong.message is None
    assert unknown.message is None


def test_an_unknown_user_has_the_same_salt_at_every_attempt_and_another_one_than_others() -> None:
    salts: list[bytes] = []
    for user in ("nobody", "nobody", "nobody else"):
        challenge = server().evaluate(client(user, "x").get_client_first().encode())
        assert isinstance(challenge, Challenge)
        salts += re.findall(rb",s=([^,]+),i=4096$", challenge.data)
    assert salts[0] == salts[1] != salts[2]
    assert len(base64.b64decode(salts[0])) == 32


@pytest.mark.parametrize(
    ("token", "password", "succeeds"), [("token", "token secret", True), ("token", "x", False), ("other", "x", False)]
)
def test_a_delegation_token_authenticates_as_its_owner(token: str, password: str, succeeds: bool) -> None:
    nonce = "clientnonce"
    bare = f"n={token},r={nonce},tokenauth=true"
    target = server()
    challenge = target.evaluate(b"n,," + bare.encode())
    assert isinstance(challenge, Challenge)
    outcome = target.evaluate(sign(bare, challenge.data.decode(), password))
    assert isinstance(outcome, Authenticated if succeeds else Failed)
    if isinstance(outcome, Authenticated):
        assert (outcome.user, outcome.expires_ms, outcome.is_token) == ("owner", 5000, True)


def test_a_password_does_not_authenticate_a_token() -> None:
    bare = "n=alice,r=clientnonce,tokenauth=true"
    target = server()
    challenge = target.evaluate(b"n,," + bare.encode())
    assert isinstance(challenge, Challenge)
    assert isinstance(target.evaluate(sign(bare, challenge.data.decode(), "secret")), Failed)


def sign(bare: str, server_first: str, password: str, *, binding: bytes = b"n,,", nonce: str | None = None) -> bytes:
    """A client's final message, with the given faults."""
    import hashlib

    mechanism = ScramMechanism.SCRAM_SHA_256
    attributes = dict(part.split("=", 1) for part in server_first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(attributes["s"]), int(attributes["i"]))
    client_key = mechanism.hmac(salted, b"Client Key")
    without_proof = f"c={base64.b64encode(binding).decode()},r={nonce or attributes['r']}"
    signed = f"{bare},{server_first},{without_proof}".encode()
    signature = mechanism.hmac(mechanism.hash(client_key), signed)
    proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
    return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


@pytest.mark.parametrize(
    ("binding", "nonce"), [(b"y,,", None), (b"n,a=bob,", None), (b"", None), (b"n,,", "xclientnonceservernonce")]
)
def test_channel_binding_and_nonce_must_be_those_of_the_exchange(binding: bytes, nonce: str | None) -> None:
    """The last nonce ends with that of the exchange, which is not enough (CVE-2024-56128)."""
    bare, target = "n=alice,r=clientnonce", server()
    challenge = target.evaluate(b"n,," + bare.encode())
    assert isinstance(challenge, Challenge)
    final = sign(bare, challenge.data.decode(), "secret", binding=binding, nonce=nonce)
    assert isinstance(target.evaluate(final), Failed)


def test_a_replayed_exchange_fails() -> None:
    bare, first = "n=alice,r=clientnonce", b"n,,n=alice,r=clientnonce"
    target = server(nonce="first nonce of the server".replace(" ", "-"))
    challenge = target.evaluate(first)
    assert isinstance(challenge, Challenge)
    final = sign(bare, challenge.data.decode(), "secret")
    assert isinstance(target.evaluate(final), Authenticated)
    assert isinstance(target.evaluate(final), Failed)  # after the end
    again = server(nonce="second-nonce-of-the-server")
    assert isinstance(again.evaluate(first), Challenge)
    assert isinstance(again.evaluate(final), Failed)


@pytest.mark.parametrize(
    "message",
    [
        b"", b"n,,", b"p=tls-unique,,n=alice,r=clientnonce", b"n,,m=x,n=alice,r=clientnonce", b"n,,n=,r=clientnonce",
        b"n,,n=al=ice,r=clientnonce", b"n,,n=alice,r=", b"n,,n=alice,r=short", b"n,,n=alice,r=client nonce",
        b"n,,n=alice,r=clientnonce,broken", b"n,,n=al\0ice,r=clientnonce", b"n,,n=\xff,r=clientnonce",
        b"n,a=bob,n=alice,r=clientnonce", b"x,,n=alice,r=clientnonce", b"n,b=c,n=alice,r=clientnonce",
        b"n,,n=alice,r=" + b"x" * 10_000,
    ],
)  # fmt: skip
def test_malformed_first_messages_fail(message: bytes) -> None:
    assert isinstance(server().evaluate(message), Failed)


def test_a_credential_with_few_iterations_is_refused() -> None:
    users = ScramUsers(alice="secret")
    key = (ScramMechanism.SCRAM_SHA_256, "alice")
    weak = users._credentials[key]
    users._credentials[key] = type(weak)(weak.salt, weak.stored_key, weak.server_key, 100)
    outcome = ScramServer(ScramMechanism.SCRAM_SHA_256, users, "servernonce").evaluate(b"n,,n=alice,r=clientnonce")
    assert isinstance(outcome, Failed)


pieces = st.sampled_from(["n,,", "n=alice", "r=clientnonce", "r=clientnonceservernonce", "c=biws", "p=", "a=b", "m=x"])
messages = st.one_of(
    st.binary(max_size=60),
    st.lists(pieces, max_size=6).map(lambda parts: ",".join(parts).encode()),
    st.just(b"n,,n=alice,r=clientnonce"),
    st.binary(max_size=32).map(
        lambda proof: b"c=biws,r=clientnonceservernonce,p=" + base64.b64encode(proof)
    ),
)  # fmt: skip


@settings(max_examples=examples(75), deadline=None)
@given(st.lists(messages, max_size=4))
def test_no_messages_without_the_password_authenticate(sent: list[bytes]) -> None:
    target = server()
    for message in sent:
        assert not isinstance(target.evaluate(message), Authenticated)
