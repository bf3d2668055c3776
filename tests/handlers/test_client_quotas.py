"""AlterClientQuotas and DescribeClientQuotas: kept, found again by filters, remembered."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import alter_client_quotas as alter
from odradek.protocol.messages import describe_client_quotas as describe
from tests.handlers.brokers import AnyBroker, SimulatedBroker

EXACT, DEFAULT, ANY = 0, 1, 2
RATE = "producer_byte_rate"
Entity = dict[str, str | None]


def change(
    broker: AnyBroker, entity: Entity, values: dict[str, float], *, remove: bool = False, validate_only: bool = False
) -> ErrorCode:
    entry = alter.EntryData(
        entity=[alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[alter.OpData(key=key, value=value, remove=remove) for key, value in values.items()],
    )
    request = alter.AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    return ErrorCode(broker.call(request, alter.AlterClientQuotasResponse).entries[0].error_code)


def find(
    broker: AnyBroker, *components: tuple[str, int, str | None], strict: bool = False
) -> list[tuple[Entity, dict[str, float]]]:
    request = describe.DescribeClientQuotasRequest(
        components=[
            describe.ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ],
        strict=strict,
    )
    answer = broker.call(request, describe.DescribeClientQuotasResponse)
    assert answer.error_code == ErrorCode.NONE
    return [
        ({each.entity_type: each.entity_name for each in entry.entity}, {v.key: v.value for v in entry.values})
        for entry in answer.entries or []
    ]


def test_a_quota_is_set_found_changed_and_taken_back(broker: AnyBroker, name: str) -> None:
    user = ("user", EXACT, name)
    assert change(broker, {"user": name}, {RATE: 1000}) is ErrorCode.NONE
    broker.settle(lambda: find(broker, user, strict=True) == [({"user": name}, {RATE: 1000})])
    assert change(broker, {"user": name}, {RATE: 7, "consumer_byte_rate": 8}) is ErrorCode.NONE
    broker.settle(lambda: find(broker, user, strict=True) == [({"user": name}, {RATE: 7, "consumer_byte_rate": 8})])
    assert change(broker, {"user": name}, {RATE: 0, "consumer_byte_rate": 0}, remove=True) is ErrorCode.NONE
    broker.settle(lambda: find(broker, user, strict=True) == [])


def test_a_trial_changes_nothing(broker: AnyBroker, name: str) -> None:
    assert change(broker, {"user": name}, {RATE: 5}, validate_only=True) is ErrorCode.NONE
    assert find(broker, ("user", EXACT, name)) == []


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ({}, {"producer_byte_rate": 1.0}),
        ({"": "x"}, {"producer_byte_rate": 1.0}),
        ({"planet": "x"}, {"producer_byte_rate": 1.0}),
        ({"user": "x"}, {"no_such_rate": 1.0}),
        ({"user": "x"}, {"producer_byte_rate": -1.0}),
        ({"user": "x"}, {"producer_byte_rate": 0.0}),
        ({"user": "x"}, {"producer_byte_rate": 1000.5}),
    ],
)
def test_a_quota_that_cannot_be_is_refused(broker: AnyBroker, entity: Entity, values: dict[str, float]) -> None:
    assert change(broker, entity, values) is ErrorCode.INVALID_REQUEST


def test_filters_find_exact_default_and_any(simulated: SimulatedBroker) -> None:
    entities: list[Entity] = [
        {"user": "u"},
        {"user": None},
        {"user": "u", "client-id": "c"},
        {"client-id": "c"},
    ]
    for number, entity in enumerate(entities, 1):
        assert change(simulated, entity, {RATE: number}) is ErrorCode.NONE

    def found(*components: tuple[str, int, str | None], strict: bool = False) -> list[float]:
        return sorted(values[RATE] for _, values in find(simulated, *components, strict=strict))

    assert found() == [1, 2, 3, 4]
    assert found(("user", EXACT, "u")) == [1, 3]
    assert found(("user", EXACT, "u"), strict=True) == [1]
    assert found(("user", DEFAULT, None)) == [2]
    assert found(("user", ANY, None)) == [1, 2, 3]
    assert found(("user", ANY, None), ("client-id", ANY, None)) == [3]
    assert found(("client-id", EXACT, "c"), strict=True) == [4]
    simulated.kill()
    assert found() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "components",
    [
        [("user", EXACT, None)],
        [("user", DEFAULT, "x")],
        [("user", 7, None)],
        [("user", ANY, None), ("user", ANY, None)],
        [("", ANY, None)],
    ],
)
def test_a_filter_that_cannot_be_is_refused(
    simulated: SimulatedBroker, components: list[tuple[str, int, str | None]]
) -> None:
    request = describe.DescribeClientQuotasRequest(
        components=[
            describe.ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ]
    )
    answer = simulated.call(request, describe.DescribeClientQuotasResponse)
    assert (answer.error_code, answer.entries) == (ErrorCode.INVALID_REQUEST, None)
    assert answer.error_message
