"""OAUTHBEARER: messages, tokens that an issuer has signed, and all the tokens that must be refused."""

import base64
import hmac
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jwk, jwt

from odradek.security.sasl.json_web_tokens import (
    InvalidToken,
    MalformedKeys,
    TokenRules,
    UnknownKey,
    ValidToken,
    parse_keys,
    validate_token,
)
from odradek.security.sasl.oauthbearer import OAuthBearerServer
from odradek.security.sasl.outcome import Authenticated, Challenge, Failed
from tests.example_counts import examples

NOW_S = 1_000_000
RULES = TokenRules(("kafka",), "https://issuer", 30, "scope", "sub")
CLAIMS: dict[str, Any] = {"sub": "alice", "iss": "https://issuer", "aud": "kafka", "iat": NOW_S, "exp": NOW_S + 100}


@cache
def key(name: str) -> Any:
    parameters: Any = {"kid": name}
    if name.startswith("rsa"):
        return jwk.RSAKey.generate_key(2048, parameters)
    if name.startswith("oct"):
        return jwk.OctKey.generate_key(256, parameters)
    return (
        jwk.ECKey.generate_key("P-256", parameters) if name == "ec" else jwk.OKPKey.generate_key("Ed25519", parameters)
    )


def document(*names: str, **extra: Any) -> bytes:
    keys = [{**key(name).as_dict(private=name.startswith("oct")), **extra} for name in names]
    return json.dumps({"keys": keys}).encode()


def token(claims: dict[str, Any], name: str = "rsa", algorithm: str = "RS256", **header: Any) -> str:
    return jwt.encode({"alg": algorithm, "kid": name, **header}, claims, key(name), algorithms=[algorithm])


def validate(text: str, *names: str, rules: TokenRules = RULES, now_s: float = NOW_S) -> ValidToken:
    return validate_token(text, parse_keys(document(*(names or ("rsa",)))), rules, int(now_s * 1000))


@pytest.mark.parametrize(
    ("name", "algorithm"), [("rsa", "RS256"), ("rsa", "PS512"), ("ec", "ES256"), ("okp", "Ed25519")]
)
def test_a_signed_token_names_the_user_and_its_end(name: str, algorithm: str) -> None:
    assert validate(token(CLAIMS, name, algorithm), "rsa", "ec", "okp") == ("alice", (NOW_S + 100) * 1000)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"exp": NOW_S - 31}, "expired"),
        ({"exp": None}, "required"),
        ({"iat": None}, "required"),
        ({"exp": "soon"}, "not a time"),
        ({"exp": True}, "not a time"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"iss": "https://other"}, "issuer"),
        ({"aud": "other"}, "audience"),
        ({"aud": None}, "audience"),
        ({"aud": {"kafka": 1}}, "audience"),
        ({"scope": 5}, "scope"),
        ({"scope": ["a", 5]}, "scope"),
        ({"sub": ""}, "sub"),
        ({"sub": ["alice"]}, "sub"),
    ],
)
def test_claims_are_checked(change: dict[str, Any], reason: str) -> None:
    claims = {name: value for name, value in {**CLAIMS, **change}.items() if value is not None}
    with pytest.raises(InvalidToken, match=reason):
        validate(token(claims))


@pytest.mark.parametrize(
    "change", [{"exp": NOW_S - 29}, {"nbf": NOW_S + 29}, {"aud": ["x", "kafka"]}, {"scope": ["a"]}]
)
def test_clocks_may_differ_and_lists_are_accepted(change: dict[str, Any]) -> None:
    assert validate(token({**CLAIMS, **change})).user == "alice"


@pytest.mark.parametrize(("expires_s", "end_s"), [(NOW_S + 1, NOW_S + 1), (NOW_S, NOW_S + 30), (NOW_S - 29, NOW_S + 1)])
def test_a_session_of_a_token_that_differing_clocks_keep_valid_ends(expires_s: int, end_s: int) -> None:
    """A session of 0 ms would have no end."""
    assert validate(token({**CLAIMS, "exp": expires_s})).expires_ms == end_s * 1000


def test_the_user_may_come_from_another_claim() -> None:
    rules = TokenRules((), None, 0, "scope", "client_id")
    assert validate(token({**CLAIMS, "client_id": "rig"}), rules=rules).user == "rig"


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def test_the_key_decides_about_algorithms() -> None:
    signed = b".".join(map(_base64, (b'{"alg":"HS256","kid":"rsa"}', json.dumps(CLAIMS).encode())))
    public = key("rsa").as_pem(private=False)
    forged = (signed + b"." + _base64(hmac.digest(public, signed, "sha256"))).decode()
    with pytest.raises(InvalidToken, match="does not fit"):
        validate(forged)
    head, body, _ = token(CLAIMS).split(".")
    none = jwt.encode({"alg": "HS256", "kid": "rsa"}, CLAIMS, key("oct"), algorithms=["HS256"]).split(".")[0]
    for forgery in (f"{head}.{body}.", f"{none}.{body}.", "eyJhbGciOiJub25lIiwia2lkIjoicnNhIn0." + body + "."):
        with pytest.raises(InvalidToken):
            validate(forgery)
    keys = parse_keys(document("rsa", alg="RS256"))
    with pytest.raises(InvalidToken, match="does not fit"):
        validate_token(token(CLAIMS, algorithm="RS512"), keys, RULES, NOW_S * 1000)


def test_keys_are_found_by_their_ids() -> None:
    with pytest.raises(UnknownKey):
        validate(token(CLAIMS, "rsa"), "rsa2")
    with pytest.raises(InvalidToken, match="signature"):
        validate(token(CLAIMS, "rsa", kid="rsa2"), "rsa", "rsa2")


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"keys": 5}', b'{"keys": []}', b'{"keys": [{"kty": "RSA"}]}', b"[" * 100_000]
)
def test_documents_without_usable_keys_are_refused(text: bytes) -> None:
    with pytest.raises(MalformedKeys):
        parse_keys(text)


def test_symmetric_keys_are_not_used() -> None:
    with pytest.raises(MalformedKeys):
        parse_keys(document("oct"))


@settings(max_examples=examples(50), deadline=None)
@given(st.text("abcXYZ019-_.=", max_size=60) | st.text(max_size=20))
def test_no_random_text_is_a_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        validate(text)


def accept(text: str) -> ValidToken:
    if text != "good":
        raise InvalidToken("it is not good")
    return ValidToken("alice", 5000)


@pytest.mark.parametrize(
    "message", [b"n,,\x01auth=Bearer good\x01\x01", b"n,a=alice,\x01auth=bearer  good\x01traceId=7\x01\x01"]
)
def test_a_valid_token_authenticates(message: bytes) -> None:
    assert OAuthBearerServer(accept).evaluate(message) == Authenticated("alice", expires_ms=5000)


def test_a_refused_token_is_answered_with_json_and_fails_when_the_client_confirms() -> None:
    server = OAuthBearerServer(accept)
    assert server.evaluate(b"n,,\x01auth=Bearer bad\x01\x01") == Challenge(b'{"status":"invalid_token"}')
    outcome = server.evaluate(b"\x01")
    assert isinstance(outcome, Failed)
    assert outcome.message == '{"status":"invalid_token"}'


def test_a_second_token_after_a_refused_one_fails() -> None:
    server = OAuthBearerServer(accept)
    server.evaluate(b"n,,\x01auth=Bearer bad\x01\x01")
    assert isinstance(server.evaluate(b"n,,\x01auth=Bearer good\x01\x01"), Failed)


@pytest.mark.parametrize(
    "message",
    [
        b"", b"\x01", b"n,,", b"n,,\x01auth=Bearer good\x01", b"n,,\x01auth=Basic good\x01\x01", b"n,,\x01\x01",
        b"y,,\x01auth=Bearer good\x01\x01", b"n,a=bob,\x01auth=Bearer good\x01\x01",
        b"n,b,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01\xff\x01", b"n,,\x01auth=Bearer good\x01no pair\x01\x01",
    ],
)  # fmt: skip
def test_malformed_messages_fail(message: bytes) -> None:
    assert isinstance(OAuthBearerServer(accept).evaluate(message), Failed)


@settings(max_examples=examples(50), deadline=None)
@given(st.binary(max_size=60))
def test_random_bytes_do_not_authenticate(message: bytes) -> None:
    assert not isinstance(OAuthBearerServer(accept).evaluate(message), Authenticated)
