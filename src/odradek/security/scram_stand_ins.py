"""Credentials for users that do not exist, which look like those of the users that do. Pure.

A client sees the salt and the iterations of a user before it proves anything. For an unknown name they are derived
from the name and a secret of the cluster, so that all brokers give the same at every attempt, with the iterations, the
length and the alphabet of a salt that a real user of the mechanism has: Kafka's tools make salts of 25 or 26 letters
and digits, librdkafka of 64 bytes, `odradek user add --config` of 32 letters, digits, hyphens and underscores.
"""

from __future__ import annotations

import hashlib
import hmac
import string
from typing import TYPE_CHECKING, NamedTuple

from odradek.security.scram_credentials import DEFAULT_ITERATIONS, SALT_BYTES, ScramCredential

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.security.scram_credentials import ScramMechanism

_ALPHABETS = tuple(
    text.encode()
    for text in (
        string.digits + "abcdef",
        string.digits + string.ascii_lowercase,
        string.ascii_letters + string.digits + "-_",
    )
)
_URL_SAFE = _ALPHABETS[-1]
_ANY_BYTE = len(_ALPHABETS)
MOST_SHAPES = 64


class CredentialShape(NamedTuple):
    """What a client can see of a credential without knowing the user."""

    iterations: int
    salt_bytes: int
    alphabet: int
    """The first of the alphabets that has all bytes of the salt; the last has all bytes."""


DEFAULT_SHAPE = CredentialShape(DEFAULT_ITERATIONS, SALT_BYTES, _ALPHABETS.index(_URL_SAFE))


def shape_of(credential: ScramCredential) -> CredentialShape:
    fitting = (index for index, alphabet in enumerate(_ALPHABETS) if not credential.salt.translate(None, alphabet))
    return CredentialShape(credential.iterations, len(credential.salt), next(fitting, _ANY_BYTE))


def shapes_of(credentials: Iterable[ScramCredential]) -> tuple[CredentialShape, ...]:
    """The different shapes, at most `MOST_SHAPES`; that of `odradek user` if there are no credentials."""
    return tuple(sorted(set(map(shape_of, credentials)))[:MOST_SHAPES]) or (DEFAULT_SHAPE,)


def stand_in_credential(
    mechanism: ScramMechanism, key: bytes, user: str, shapes: tuple[CredentialShape, ...] = (DEFAULT_SHAPE,)
) -> ScramCredential:
    """The same at every attempt, with keys that no password has. A shape that is added later changes the stand-ins of
    few names: each name has the shape with the largest digest."""
    name = bytes((mechanism,)) + user.encode(errors="surrogatepass")
    shape = shapes[0]
    if len(shapes) > 1:
        shape = max(shapes, key=lambda each: hmac.digest(key, b"shape" + repr(tuple(each)).encode() + name, "sha256"))
    stream = hashlib.shake_256(hmac.digest(key, b"salt" + name, "sha256")).digest(shape.salt_bytes)
    if shape.alphabet != _ANY_BYTE:
        alphabet = _ALPHABETS[shape.alphabet]
        stream = bytes(alphabet[each % len(alphabet)] for each in stream)
    keys = [mechanism.hmac(key, purpose + name) for purpose in (b"stored key", b"server key")]
    return ScramCredential(stream, keys[0], keys[1], shape.iterations)
