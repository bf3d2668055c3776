"""The client's side of PLAIN and SCRAM, against an independent server (scramp) and against servers that cheat."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramMechanism

from odradek.conventions.client_properties import PLAIN_MODULE, SCRAM_MODULE
from odradek.security.sasl_client.credentials import UnusableCredentials, credentials_of_jaas
from odradek.security.sasl_client.exchange import SaslClientError
from odradek.security.sasl_client.scram import ScramExchange

NONCE = "fyko+d2lbbFgONRv9qkxdawL"
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)


@settings(max_examples=20, deadline=None)
@given(user=NAMES, password=NAMES, mechanism=st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"]))
def test_server_and_client_prove_the_password_to_each_other(user: str, password: str, mechanism: str) -> None:
    kind = ScramMechanism(mechanism)
    known = kind.make_auth_info(password, iteration_count=4096)
    names = []

    def credentials(name: str) -> object:
        names.append(name)
        return known

    server = kind.make_server(credentials)
    client = ScramExchange(mechanism, user, password, NONCE)
    server.set_client_first(client.begin().decode())
    assert names == [user]
    proof = client.answer(server.get_server_first().encode())
    assert proof is not None
    server.set_client_final(proof.decode())
    assert client.answer(server.get_server_final().encode()) is None


def test_example_of_rfc_7677() -> None:
    client = ScramExchange("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert client.begin() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    answer = client.answer(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert answer == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert client.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize(
    "challenge",
    [
        b"r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",  # another nonce
        NONCE.encode().join([b"r=", b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"]),  # nothing of the server's own
        f"r={NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1".encode(),
        f"r={NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=999999999".encode(),
        f"r={NONCE}x,s=?,i=4096".encode(),
        b"\xff",
        b"r=" + b"x" * 10_000,
    ],
)
def test_first_message_of_a_server_that_cheats_is_refused(challenge: bytes) -> None:
    client = ScramExchange("SCRAM-SHA-512", "user", "pencil", NONCE)
    client.begin()
    with pytest.raises(SaslClientError):
        client.answer(challenge)


def test_server_without_the_password_is_refused() -> None:
    client = ScramExchange("SCRAM-SHA-256", "user", "pencil", NONCE)
    client.begin()
    client.answer(f"r={NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    with pytest.raises(SaslClientError, match="did not prove"):
        client.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(SaslClientError, match="did not prove"):
        client.answer(b"e=invalid-proof")


def test_credentials_come_from_the_login_module_of_the_mechanism() -> None:
    plain = credentials_of_jaas("PLAIN", f'{PLAIN_MODULE} required username="broker" password="s3cret";')
    assert plain.exchange("").begin() == b"\0broker\0s3cret"
    assert "s3cret" not in repr(plain)
    token = f'{SCRAM_MODULE} required username="id" password="hmac" tokenauth="true";'
    assert credentials_of_jaas("SCRAM-SHA-256", token).exchange("n").begin() == b"n,,n=id,r=n,tokenauth=true"
    for mechanism, line in (
        ("GSSAPI", token),
        ("PLAIN", token),
        ("PLAIN", f'{PLAIN_MODULE} required username="broker";'),
    ):
        with pytest.raises(UnusableCredentials):
            credentials_of_jaas(mechanism, line)
