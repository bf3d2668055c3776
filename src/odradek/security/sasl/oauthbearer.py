"""OAUTHBEARER (RFC 7628): the client sends a token that an issuer has signed. Pure: the check is passed in.

A token that is refused is answered with a JSON object; the client confirms it with one byte, and authentication fails.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.security.sasl.json_web_tokens import InvalidToken
from odradek.security.sasl.outcome import Authenticated, Challenge, Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.security.sasl.json_web_tokens import ValidToken
    from odradek.security.sasl.outcome import Outcome

NAME = "OAUTHBEARER"
LARGEST_MESSAGE_BYTES = 128 * 1024
REFUSAL = '{"status":"invalid_token"}'
_SEPARATOR = "\x01"
_PAIR = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]+)")
_BEARER = re.compile(r"bearer +([-_~+/.a-zA-Z0-9]+=*)", re.IGNORECASE)


class _Malformed(ValueError):
    pass


class OAuthBearerServer:
    def __init__(self, validate: Callable[[str], ValidToken]) -> None:
        self._validate = validate
        self._refusal: str | None = None
        self._is_over = False

    def evaluate(self, response: bytes) -> Outcome:
        if self._is_over:
            return Failed("a message after the end of the exchange")
        outcome = self._evaluate(response)
        self._is_over = not isinstance(outcome, Challenge)
        return outcome

    def _evaluate(self, response: bytes) -> Outcome:
        if self._refusal is not None:
            return Failed(self._refusal, REFUSAL)
        try:
            authorization_id, token = _parse(response)
        except _Malformed as problem:
            return Failed(str(problem))
        try:
            valid = self._validate(token)
        except InvalidToken as problem:
            self._refusal = f"token refused: {problem}"
            return Challenge(REFUSAL.encode())
        if authorization_id not in ("", valid.user):
            return Failed(
                f"user {valid.user!r} asked to act as {authorization_id!r}",
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({valid.user})",
            )
        return Authenticated(valid.user, expires_ms=valid.expires_ms)


def _parse(response: bytes) -> tuple[str, str]:
    """The authorization id, which may be empty, and the token."""
    if len(response) > LARGEST_MESSAGE_BYTES:
        raise _Malformed(f"a message of {len(response)} bytes")
    try:
        text = response.decode()
    except UnicodeDecodeError:
        raise _Malformed("the message is not UTF-8") from None
    header, separator, rest = text.partition("," + _SEPARATOR)
    if not separator or not rest.endswith(_SEPARATOR) or not header.startswith("n,"):
        raise _Malformed("the message is not one of OAUTHBEARER")
    authorization_id = header.removeprefix("n,")
    if authorization_id:
        if not authorization_id.startswith("a="):
            raise _Malformed("the authorization id is malformed")
        authorization_id = authorization_id[2:].replace("=2C", ",").replace("=3D", "=")
    pairs: dict[str, str] = {}
    for pair in rest[:-1].split(_SEPARATOR)[:-1]:
        match = _PAIR.fullmatch(pair)
        if match is None:
            raise _Malformed("a pair is malformed")
        pairs[match[1]] = match[2]
    bearer = _BEARER.fullmatch(pairs.get("auth", ""))
    if bearer is None:
        raise _Malformed("there is no bearer token")
    return authorization_id, bearer[1]
