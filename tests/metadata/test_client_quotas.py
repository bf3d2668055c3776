"""Quotas: what may be set for whom, and which entities a filter finds."""

import pytest

from odradek.metadata.client_quotas import (
    QuotaAlteration,
    QuotaEntity,
    QuotaFilter,
    QuotaMatch,
    QuotaOperation,
    decide_quota,
    describe_client_quotas,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

Entity = list[tuple[str, str | None]]
ADMIN: Entity = [("user", "admin")]


def decide(entity: Entity, *operations: tuple[str, float, bool]) -> dict[str, float | None] | Refusal:
    quotas = {frozenset(ADMIN): {"consumer_byte_rate": 5.0}}
    return decide_quota(QuotaAlteration(entity, [QuotaOperation(*operation) for operation in operations]), quotas)


def test_only_real_changes_are_made() -> None:
    assert decide(ADMIN, ("consumer_byte_rate", 20000.0, False)) == {"consumer_byte_rate": 20000.0}
    assert decide(ADMIN, ("consumer_byte_rate", 5.0, False)) == {}
    assert decide(ADMIN, ("consumer_byte_rate", 0.0, True), ("producer_byte_rate", 0.0, True)) == {
        "consumer_byte_rate": None
    }
    assert decide([("user", None), ("client-id", "c")], ("request_percentage", 12.5, False)) == {
        "request_percentage": 12.5
    }
    assert decide([("ip", "10.0.0.1")], ("connection_creation_rate", 3.0, False)) == {"connection_creation_rate": 3.0}


@pytest.mark.parametrize(
    ("entity", "operation", "message"),
    [
        ([], ("consumer_byte_rate", 1.0, False), "Invalid empty client quota entity"),
        ([("team", "x")], ("consumer_byte_rate", 1.0, False), "Unhandled client quota entity type: team"),
        ([("user", "")], ("consumer_byte_rate", 1.0, False), "Empty user not supported"),
        ([("user", "a"), ("user", "b")], ("consumer_byte_rate", 1.0, False), "duplicate entity entry"),
        ([("ip", "::1"), ("user", "b")], ("consumer_byte_rate", 1.0, False), "should not be combined"),
        ([("ip", "1.2.3")], ("connection_creation_rate", 1.0, False), "is not a valid IP or resolvable host."),
        ([("ip", "localhost")], ("connection_creation_rate", 1.0, False), "is not a valid IP or resolvable host."),
        (ADMIN, ("connection_creation_rate", 1.0, False), "Invalid configuration key connection_creation_rate"),
        (ADMIN, ("consumer_byte_rate", 0.0, False), "Quota consumer_byte_rate must be greater than 0"),
        (ADMIN, ("consumer_byte_rate", float("nan"), False), "Quota consumer_byte_rate must be greater than 0"),
        (ADMIN, ("consumer_byte_rate", 1.5, False), "consumer_byte_rate cannot be a fractional value."),
        (ADMIN, ("consumer_byte_rate", 1e300, False), "is too large for a LONG."),
        ([("ip", None)], ("connection_creation_rate", 1e10, False), "is too large for an INT."),
    ],
)
def test_refusals(entity: Entity, operation: tuple[str, float, bool], message: str) -> None:
    refusal = decide(entity, operation)
    assert isinstance(refusal, Refusal)
    assert refusal.error is ErrorCode.INVALID_REQUEST
    assert message in str(refusal.message)


def test_one_key_twice_is_refused() -> None:
    refusal = decide(ADMIN, ("consumer_byte_rate", 1.0, False), ("consumer_byte_rate", 2.0, False))
    assert isinstance(refusal, Refusal)


ALICE: QuotaEntity = frozenset({("user", "alice")})
ALICE_APP: QuotaEntity = frozenset({("user", "alice"), ("client-id", "app")})
DEFAULT_USER: QuotaEntity = frozenset({("user", None)})
QUOTAS = {ALICE: {"consumer_byte_rate": 1.0}, ALICE_APP: {"consumer_byte_rate": 2.0}, DEFAULT_USER: {"x": 3.0}}


@pytest.mark.parametrize(
    ("filters", "strict", "found"),
    [
        ([], False, {ALICE, ALICE_APP, DEFAULT_USER}),
        ([QuotaFilter("user", QuotaMatch.EXACT, "alice")], False, {ALICE, ALICE_APP}),
        ([QuotaFilter("user", QuotaMatch.EXACT, "alice")], True, {ALICE}),
        ([QuotaFilter("user", QuotaMatch.DEFAULT, None)], False, {DEFAULT_USER}),
        ([QuotaFilter("client-id", QuotaMatch.SPECIFIED, None)], False, {ALICE_APP}),
        ([QuotaFilter("ip", QuotaMatch.SPECIFIED, None)], False, set()),
    ],
)
def test_filters_find_entities(filters: list[QuotaFilter], strict: bool, found: set[QuotaEntity]) -> None:
    result = describe_client_quotas(QUOTAS, filters, strict=strict)
    assert not isinstance(result, Refusal)
    assert {entity for entity, _ in result} == found


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ([QuotaFilter("", 0, "x")], ErrorCode.INVALID_REQUEST),
        ([QuotaFilter("team", 0, "x")], ErrorCode.UNSUPPORTED_VERSION),
        ([QuotaFilter("user", 9, "x")], ErrorCode.INVALID_REQUEST),
        ([QuotaFilter("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([QuotaFilter("user", 2, "x")], ErrorCode.INVALID_REQUEST),
        ([QuotaFilter("user", 0, "x"), QuotaFilter("user", 0, "y")], ErrorCode.INVALID_REQUEST),
        ([QuotaFilter("user", 0, "x"), QuotaFilter("ip", 0, "y")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_make_no_sense(filters: list[QuotaFilter], error: ErrorCode) -> None:
    refusal = describe_client_quotas(QUOTAS, filters, strict=False)
    assert isinstance(refusal, Refusal)
    assert refusal.error is error
