"""The most specific quota applies, and says who shares it. Kafka's managers agree (test_quotas_against_kafka)."""

import pytest

from odradek.security.quotas.precedence import LONGEST_KEPT_NAME, QuotaEntity, QuotaKey, QuotaLevels

KEY = "producer_byte_rate"

# From the most specific to the least, with the part of the client that has the quota.
LEVELS: list[tuple[QuotaEntity, QuotaKey]] = [
    (frozenset({("user", "alice"), ("client-id", "etl")}), QuotaKey("alice", "etl")),
    (frozenset({("user", "alice"), ("client-id", None)}), QuotaKey("alice", "etl")),
    (frozenset({("user", "alice")}), QuotaKey("alice", None)),
    (frozenset({("user", None), ("client-id", "etl")}), QuotaKey("alice", "etl")),
    (frozenset({("user", None), ("client-id", None)}), QuotaKey("alice", "etl")),
    (frozenset({("user", None)}), QuotaKey("alice", None)),
    (frozenset({("client-id", "etl")}), QuotaKey(None, "etl")),
    (frozenset({("client-id", None)}), QuotaKey(None, "etl")),
]


@pytest.mark.parametrize("place", range(len(LEVELS)))
def test_a_level_applies_if_no_level_before_it_is_set(place: int) -> None:
    quotas = {entity: {KEY: float(number)} for number, (entity, _) in enumerate(LEVELS[place:], place)}
    found = QuotaLevels(quotas, KEY).find("alice", "etl")
    assert found is not None
    assert (found.key, found.limit) == (LEVELS[place][1], place)


def test_quotas_of_others_and_of_other_kinds_do_not_apply() -> None:
    quotas = {
        frozenset({("user", "bob")}): {KEY: 1.0},
        frozenset({("client-id", "app")}): {KEY: 1.0},
        frozenset({("user", "alice")}): {"consumer_byte_rate": 1.0},
        frozenset({("ip", None)}): {"connection_creation_rate": 1.0},
    }
    assert QuotaLevels(quotas, KEY).find("alice", "etl") is None
    assert QuotaLevels(quotas, "request_percentage").is_empty


def test_a_client_without_an_id_does_not_escape_the_default() -> None:
    found = QuotaLevels({frozenset({("client-id", None)}): {KEY: 5.0}}, KEY).find("alice", "")
    assert found is not None
    assert found.limit == 5


def test_a_long_client_id_is_kept_as_a_short_one() -> None:
    levels = QuotaLevels({frozenset({("client-id", None)}): {KEY: 5.0}}, KEY)
    found, other = levels.find("a", "x" * 30_000), levels.find("a", "x" * 30_001)
    assert found is not None
    assert other is not None
    assert found.key != other.key
    assert len(found.key.client_id or "") <= LONGEST_KEPT_NAME
