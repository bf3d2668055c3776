"""SCRAM credentials: the checks and messages of Kafka's ScramControlManager, and what becomes of the image."""

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.controller.decisions.scram_credentials import (
    ScramAlteration,
    ScramDeletion,
    ScramResult,
    ScramUpsertion,
    decide_scram_alterations,
)
from odradek.controller.decisions.topics import Cluster
from odradek.metadata.image import MetadataImage
from odradek.metadata.snapshot import empty_image
from odradek.metadata.users import ScramKey
from odradek.protocol.errors import ErrorCode
from odradek.security.scram_credentials import (
    ScramMechanism,
    credential_from_password,
    salted_password,
)
from tests.metadata.inline_host import CountingEntropy

SHA_256 = ScramMechanism.SCRAM_SHA_256
TWICE = "A user credential cannot be altered twice in the same request"


def upsertion(user: str = "alice", mechanism: int = SHA_256, iterations: int = 4096) -> ScramUpsertion:
    salted = salted_password(SHA_256, "secret", b"salt", 4096)
    return ScramUpsertion(user, mechanism, iterations, b"salt", salted)


def alter(*alterations: ScramAlteration, image: MetadataImage | None = None) -> tuple[list[ScramResult], MetadataImage]:
    before = image or empty_image("c")
    entropy = CountingEntropy()
    cluster = Cluster(before, BrokerConfig.from_properties({}), entropy.random_below, entropy.uuid)
    results, changes = decide_scram_alterations(alterations, cluster)
    return results, before.apply_all(changes)


def test_a_credential_is_derived_from_the_salted_password_and_can_be_removed() -> None:
    results, image = alter(upsertion())
    assert results == [ScramResult("alice")]
    expected = credential_from_password(SHA_256, "secret", b"salt")
    assert image.users.scram_credentials == {ScramKey("alice", SHA_256): expected}
    assert len(image.users.stand_in_key) == 32
    results, removed = alter(ScramDeletion("alice", SHA_256), image=image)
    assert results == [ScramResult("alice")]
    assert not removed.users.scram_credentials
    assert removed.users.stand_in_key == image.users.stand_in_key


@pytest.mark.parametrize(
    ("alteration", "error", "message"),
    [
        (upsertion(user=""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion(user="x" * 2000), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username is too long"),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (ScramDeletion("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (ScramDeletion("a", 9), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (
            ScramDeletion("a", 1),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_refusals_are_those_of_kafka(alteration: ScramAlteration, error: ErrorCode, message: str) -> None:
    results, image = alter(alteration)
    assert results == [ScramResult(alteration.user, error, message)]
    assert not image.users.scram_credentials


def test_a_user_may_be_altered_once_in_a_request() -> None:
    _, image = alter(upsertion())
    twice = ScramResult("alice", ErrorCode.DUPLICATE_RESOURCE, TWICE)
    both = [upsertion(), upsertion(mechanism=2)], [ScramDeletion("alice", 1), upsertion(mechanism=2)]
    for alterations in both:
        results, after = alter(*alterations, upsertion("bob"), image=image)
        assert results == [twice, ScramResult("bob")]
        assert set(after.users.scram_credentials) == {ScramKey("alice", SHA_256), ScramKey("bob", SHA_256)}
