"""What a broker keeps of a SCRAM password (RFC 5802): salt, iterations, and two keys from which the password cannot be
computed. Pure; salts are passed in."""

from __future__ import annotations

import enum
import hashlib
import hmac
from dataclasses import field

from odradek.conventions.dataclass import dataclass

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
DEFAULT_ITERATIONS = 4096
SALT_BYTES = 32
LARGEST_SALT_BYTES = 1024
LARGEST_NAME_BYTES = 1024


class ScramMechanism(enum.IntEnum):
    """With the codes of Kafka's admin requests."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @property
    def digest_bytes(self) -> int:
        return 32 if self is ScramMechanism.SCRAM_SHA_256 else 64

    def hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.hash_name)

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.hash_name, data).digest()


MECHANISMS_BY_NAME = {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """Its text shows no keys."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_from_salted_password(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    stored_key = mechanism.hash(mechanism.hmac(salted, b"Client Key"))
    return ScramCredential(salt, stored_key, mechanism.hmac(salted, b"Server Key"), iterations)


def credential_from_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int = DEFAULT_ITERATIONS
) -> ScramCredential:
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_from_salted_password(mechanism, salted, salt, iterations)
