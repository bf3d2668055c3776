"""PLAIN (RFC 4616): the client sends its name and password in one message. Pure.

The messages of failures are Kafka's; a wrong password and an unknown user have the same one, after the same work.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from odradek.security.sasl.outcome import Authenticated, Failed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.security.sasl.outcome import Outcome

NAME = "PLAIN"
LARGEST_MESSAGE_BYTES = 3 * 4096  # RFC 4616 asks for 255 bytes per field


class PlainServer:
    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def evaluate(self, response: bytes) -> Outcome:
        if len(response) > LARGEST_MESSAGE_BYTES:
            return Failed(f"a PLAIN message of {len(response)} bytes", "Invalid SASL/PLAIN response: too long")
        fields = response.decode(errors="replace").split("\0", 4)
        if len(fields) != 3:
            message = f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(fields), 4)}"
            return Failed("a malformed PLAIN message", message)
        authorization_id, user, password = fields
        if not user:
            return Failed("no user name", "Authentication failed: username not specified")
        if not password:
            return Failed("no password", "Authentication failed: password not specified")
        expected = self._passwords.get(user)
        is_right = hmac.compare_digest(_digest(password), _digest(expected or ""))
        if expected is None or not is_right:
            reason = "unknown user" if expected is None else "wrong password"
            return Failed(f"{reason} {user!r}", "Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            return Failed(
                f"user {user!r} asked to act as {authorization_id!r}",
                "Authentication failed: Client requested an authorization id that is different from username",
            )
        return Authenticated(user)


def _digest(password: str) -> bytes:
    """A digest of fixed length, so that the time of a comparison does not depend on the length of the password."""
    return hashlib.sha256(password.encode(errors="surrogatepass")).digest()
