"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): both sides prove that they know the password. Pure.

As Kafka, it does not normalize user names and passwords. A server that asks for too few or too many iterations is
refused: few would make a stolen message easy to search, many would keep this process busy.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re

from odradek.security.sasl_client.exchange import SaslClientError

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
FEWEST_ITERATIONS = 4096
MOST_ITERATIONS = 1_000_000
_LONGEST_MESSAGE_BYTES = 4096
_HEADER = "n,,"  # no channel binding, no other authorization identity

_SERVER_FIRST = re.compile(r"r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/=]+),i=([0-9]{1,9})(?:,.*)?")
_SERVER_FINAL = re.compile(r"v=([A-Za-z0-9+/=]+)(?:,.*)?")


class ScramExchange:
    __slots__ = ("_client_first", "_hash", "_nonce", "_password", "_server_signature", "mechanism")

    def __init__(self, mechanism: str, user: str, password: str, nonce: str, *, is_token: bool = False) -> None:
        """`is_token` for a delegation token: its id is the user, its HMAC the password (KIP-48)."""
        self.mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._password = password
        self._nonce = nonce
        escaped = user.replace("=", "=3D").replace(",", "=2C")
        self._client_first = f"n={escaped},r={nonce}" + (",tokenauth=true" if is_token else "")
        self._server_signature: bytes | None = None

    def begin(self) -> bytes:
        return (_HEADER + self._client_first).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if len(challenge) > _LONGEST_MESSAGE_BYTES:
            raise SaslClientError("a SCRAM message of the server is too long")
        try:
            text = challenge.decode()
        except UnicodeDecodeError:
            raise SaslClientError("a SCRAM message of the server is malformed") from None
        if self._server_signature is None:
            return self._prove(text)
        self._check_server(text)
        return None

    def _prove(self, server_first: str) -> bytes:
        match = _SERVER_FIRST.fullmatch(server_first)
        if match is None:
            raise SaslClientError("the first SCRAM message of the server is malformed")
        nonce, salt, iterations = match[1], _decode(match[2]), int(match[3])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise SaslClientError("the server's SCRAM nonce does not continue the client's")
        if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise SaslClientError(
                f"the server asks for {iterations} SCRAM iterations, which is not between {FEWEST_ITERATIONS} "
                f"and {MOST_ITERATIONS}"
            )
        without_proof = f"c={base64.b64encode(_HEADER.encode()).decode()},r={nonce}"
        signed = f"{self._client_first},{server_first},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = hmac.digest(stored_key, signed, self._hash)
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._server_signature = hmac.digest(server_key, signed, self._hash)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _check_server(self, server_final: str) -> None:
        match = _SERVER_FINAL.fullmatch(server_final)
        if match is None or not hmac.compare_digest(_decode(match[1]), self._server_signature or b""):
            raise SaslClientError("the server did not prove that it knows the password")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise SaslClientError("a SCRAM message of the server is malformed") from None
