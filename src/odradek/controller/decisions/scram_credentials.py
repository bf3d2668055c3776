"""The controller's decisions about SCRAM credentials, with Kafka's checks and messages. Pure.

A user may be named once in a request. With the first credential of a cluster, the key is chosen from which brokers
derive the salts of users that do not exist.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.metadata.changes import ScramCredentialChanged, StandInKeyChosen
from odradek.metadata.users import ScramKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.scram_credentials import (
    LARGEST_NAME_BYTES,
    LARGEST_SALT_BYTES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
    credential_from_salted_password,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage

STAND_IN_KEY_BYTES = 32
_TWICE = Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """`mechanism` is the code that the client sent, which may be unknown."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


ScramAlteration = ScramDeletion | ScramUpsertion


@dataclass(frozen=True, slots=True)
class ScramResult:
    user: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def decide_scram_alterations(
    alterations: Sequence[ScramAlteration], cluster: Cluster
) -> tuple[list[ScramResult], list[Change]]:
    """Deletions come before upsertions in `alterations`."""
    decisions: dict[str, ScramCredentialChanged | Refusal] = {}
    for alteration in alterations:
        user = alteration.user
        if user not in decisions:
            decisions[user] = _decide(alteration, cluster.image)
        elif not isinstance(decisions[user], Refusal):
            decisions[user] = _TWICE
    results = [
        ScramResult(user, *decision) if isinstance(decision, Refusal) else ScramResult(user)
        for user, decision in decisions.items()
    ]
    changes: list[Change] = [each for each in decisions.values() if not isinstance(each, Refusal)]
    if changes and not cluster.image.users.stand_in_key:
        changes.append(StandInKeyChosen(bytes(cluster.random_below(256) for _ in range(STAND_IN_KEY_BYTES))))
    return results, changes


def refuse_scram_alterations(alterations: Sequence[ScramAlteration], refusal: Refusal) -> list[ScramResult]:
    return [ScramResult(user, *refusal) for user in dict.fromkeys(each.user for each in alterations)]


def _decide(alteration: ScramAlteration, image: MetadataImage) -> ScramCredentialChanged | Refusal:
    user = alteration.user
    if not user:
        return _unacceptable("Username must not be empty")
    if len(user.encode()) > LARGEST_NAME_BYTES:
        return _unacceptable("Username is too long")
    if alteration.mechanism not in list(ScramMechanism):
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    mechanism = ScramMechanism(alteration.mechanism)
    if isinstance(alteration, ScramDeletion):
        if ScramKey(user, mechanism) not in image.users.scram_credentials:
            message = "Attempt to delete a user credential that does not exist"
            return Refusal(ErrorCode.RESOURCE_NOT_FOUND, message)
        return ScramCredentialChanged(user, mechanism, None)
    if alteration.iterations < MIN_ITERATIONS:
        return _unacceptable("Too few iterations")
    if alteration.iterations > MAX_ITERATIONS:
        return _unacceptable("Too many iterations")
    if len(alteration.salt) > LARGEST_SALT_BYTES or len(alteration.salted_password) > LARGEST_SALT_BYTES:
        return _unacceptable("Salt or salted password is too long")
    credential = credential_from_salted_password(
        mechanism, alteration.salted_password, alteration.salt, alteration.iterations
    )
    return ScramCredentialChanged(user, mechanism, credential)


def _unacceptable(message: str) -> Refusal:
    return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)
