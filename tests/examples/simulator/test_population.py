"""A population is reproducible and plausible, with the declared shares of faults and flaws.

The rigs stand for entities whose signals walk, the cards (tests/examples/cards) for the other constructs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.examples.folders import find_example
from odradek.examples.simulator.loading import load_simulation
from odradek.examples.simulator.population import Population, SimulatedRecord

if TYPE_CHECKING:
    from odradek.examples.simulator.model import Simulation

MONDAY_S = 1_800_000_000.0
RIGS = load_simulation(find_example("rigs").simulator, {})
CARDS = load_simulation(str(Path(__file__).parents[1] / "cards" / "simulator.yml"), {})


def changed(
    simulation: Simulation, late: float = 0.0, malformed: float = 0.0, every_s: float | None = 3600.0, **rest: Any
) -> Simulation:
    flaws = dataclasses.replace(simulation.flaws, late_share=late, malformed_share=malformed, duplicate_share=0.0)
    faults = None
    if every_s is not None:
        assert simulation.faults is not None
        faults = dataclasses.replace(simulation.faults, every_s=every_s)
    return dataclasses.replace(simulation, flaws=flaws, faults=faults, **rest)


def records(
    simulation: Simulation, number: int, *, rate: float = 1000, start_s: float = MONDAY_S
) -> list[SimulatedRecord]:
    population = Population(simulation)
    made = (population.next_record(start_s + turn / rate) for turn in count())
    return [record for record, _ in zip((record for record in made if record is not None), range(number), strict=False)]


def rows(made: list[SimulatedRecord]) -> list[dict[str, Any]]:
    return [json.loads(record.value or b"") for record in made if record.flaw is None]


@pytest.mark.parametrize(
    ("simulation", "number", "rate", "digest"),
    [
        (changed(RIGS, late=0.01), 3000, 1000, "cf750362c881fcd686284284d916d73f638ad34177f5e405f8622f025d72512a"),
        (
            changed(RIGS, late=0.2, every_s=600, count=5, seed=3),
            6000,
            1,
            "7212f6480d63d388889c7364df7a464b9b20240ed458c3a07c07198bacd5be33",
        ),
    ],
)
def test_the_rigs_send_the_records_that_benchmarks_were_measured_with(
    simulation: Simulation, number: int, rate: float, digest: str
) -> None:
    found = hashlib.sha256()
    for record in records(simulation, number, rate=rate):
        found.update(record.key + b" " + (record.value or b"") + b"\n")
    assert found.hexdigest() == digest


def test_a_record_has_the_fields_and_types_of_its_template() -> None:
    (record,) = records(changed(CARDS, every_s=None), 1)
    assert record.key.startswith(b"acct-10")
    row = json.loads(record.value or b"")
    assert list(row) == [
        "payment", "account", "at", "at_ms", "amount", "merchant", "balance", "payments", "mood", "label", "currency",
        "channels", "is_test",
    ]  # fmt: skip
    assert (row["payment"], row["account"], row["payments"]) == ("p-1", record.key.decode(), 1)
    assert (row["at"], row["at_ms"]) == ("2027-01-15T08:00:00.000Z", 1_800_000_000_000)
    assert row["channels"] == ["card", row["merchant"]["kind"]]
    assert (row["label"], row["currency"], row["is_test"]) == ("", "EUR", False)


@given(
    seed=st.integers(), entities=st.integers(1, 40), gaps=st.lists(st.floats(0, 3600), min_size=1, max_size=60),
    which=st.sampled_from([RIGS, CARDS]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_the_same_seed_and_the_same_clock_give_the_same_records(
    seed: int, entities: int, gaps: list[float], which: Simulation
) -> None:
    chosen = changed(which, late=0.2, malformed=0.2, every_s=720, count=entities, seed=seed)

    def run() -> list[SimulatedRecord | None]:
        population, time_s = Population(chosen), MONDAY_S
        made = []
        for gap in gaps:
            time_s += gap
            made.append(population.next_record(time_s))
        return made

    assert run() == run()


def test_another_seed_gives_other_records() -> None:
    assert records(dataclasses.replace(RIGS, seed=1), 100) != records(dataclasses.replace(RIGS, seed=2), 100)


@pytest.mark.parametrize("which", [RIGS, CARDS])
def test_a_larger_population_leaves_the_entities_that_it_had_as_they_are(which: Simulation) -> None:
    small, large = (Population(dataclasses.replace(which, count=number)) for number in (3, 30))
    for population in (small, large):
        for entity in population.entities[:3]:
            entity.advance(MONDAY_S)
    found = [[each.readings(MONDAY_S) for each in population.entities[:3]] for population in (small, large)]
    assert found[0] == found[1]


@given(
    seed=st.integers(), start_s=st.floats(0, 4e9), gaps=st.lists(st.floats(-100, 1e6), min_size=1, max_size=60),
    every_s=st.none() | st.floats(60, 1e6),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_signals_keep_their_bounds_whatever_the_clock_does(
    seed: int, start_s: float, gaps: list[float], every_s: float | None
) -> None:
    population = Population(changed(RIGS, late=0.3, every_s=every_s, count=5, seed=seed))
    time_s = start_s + 400
    for gap in gaps:
        time_s = max(400.0, time_s + gap)
        record = population.next_record(time_s)
        if record is None:
            continue
        row = json.loads(record.value or b"")
        assert 1 <= row["hcid"] <= 5
        assert record.key == str(row["hcid"]).encode()
        assert 0 <= row["production"] <= 100
        assert 0 <= row["sensor_readings"]["pressure"] <= 300
        assert -20 <= row["sensor_readings"]["temperature"] <= 150


@given(seed=st.integers())
@settings(max_examples=10, deadline=None)
def test_healthy_pumps_stay_below_every_limit_and_move(seed: int) -> None:
    found = rows(records(changed(RIGS, every_s=None, count=10, seed=seed), 2000, rate=0.1))
    pressure = [row["sensor_readings"]["pressure"] for row in found]
    temperature = [row["sensor_readings"]["temperature"] for row in found]
    assert 65 < min(pressure) < max(pressure) < 145
    assert 10 < min(temperature) < max(temperature) < 60
    assert len({row["sensor_readings"]["pressure"] for row in found if row["hcid"] == 1}) > 3


@given(seed=st.integers())
@settings(max_examples=2, deadline=None)
def test_every_kind_of_fault_comes_within_sixty_pump_hours(seed: int) -> None:
    population = Population(changed(RIGS, count=60, seed=seed))
    seen: dict[str, float] = {}
    silent: Counter[int] = Counter()
    for second in range(0, 3600, 5):
        for pump in population.entities:
            time_s = MONDAY_S + second
            pump.advance(time_s)
            if pump.fault is not None:
                readings = pump.readings(time_s)
                kind = pump.fault.kind.name
                value = {"pressure creep": readings["pressure"], "overheating": readings["temperature"]}
                seen[kind] = max(seen.get(kind, 0), value.get(kind, 0))
            silent[pump.entity_id] += not pump.records(time_s)
    assert set(seen) == {"pressure creep", "overheating", "silence"}
    assert seen["pressure creep"] > 140
    assert seen["overheating"] > 80
    assert 30 < max(silent.values()) * 5 < 3000  # was silent and recovered


def test_a_failing_pump_is_well_again_after_its_repair() -> None:
    (pump,) = Population(changed(RIGS, every_s=900, count=1, seed=3)).entities
    was_failing = []
    for second in range(0, 4 * 3600, 5):
        pump.advance(MONDAY_S + second)
        was_failing.append(pump.fault is not None)
    assert sum(before != after for before, after in pairwise(was_failing)) > 4


def test_a_burst_of_fraud_sends_more_of_larger_payments_elsewhere() -> None:
    found = rows(records(changed(CARDS, every_s=900), 8000, rate=20))
    fraud = [row for row in found if row["label"] == "fraud"]
    usual = [row for row in found if not row["label"] and row["mood"] != "spending"]
    assert len(fraud) > 100
    assert {row["merchant"]["country"] for row in fraud} == {"US", "BR"}
    mean = {
        name: sum(row["amount"] for row in group) / len(group) for name, group in (("fraud", fraud), ("usual", usual))
    }
    assert mean["fraud"] > 2.5 * mean["usual"]
    turns = [row["account"] for row in found]
    burst = next(index for index, row in enumerate(found) if row["label"] == "fraud")
    assert Counter(turns[burst : burst + 8]).most_common(1)[0][1] >= 4
    assert {row["merchant"]["kind"] for row in found} == {"grocer", "fuel", 'caf"é'}


def test_a_balance_falls_by_each_payment_and_is_filled_up() -> None:
    found = [row for row in rows(records(changed(CARDS, every_s=None), 4000)) if row["account"] == "acct-1007"]
    assert [row["payments"] for row in found] == list(range(1, len(found) + 1))
    assert len({row["merchant"]["country"] for row in found}) == 1
    refills = 0
    for before, after in pairwise(found):
        expected = round(before["balance"] - after["amount"], 2)
        if after["balance"] != pytest.approx(expected, abs=0.011):
            refills += 1
            assert 1000 <= after["balance"] - expected <= 3000.01
        assert after["balance"] >= 0
    assert refills


def test_states_follow_each_other_and_change_what_is_spent() -> None:
    found = rows(records(changed(CARDS, every_s=None), 5000, rate=0.25))
    by_state = {state: [row["amount"] for row in found if row["mood"] == state] for state in ("usual", "spending")}
    assert {row["mood"] for row in found} == {"usual", "spending", "travelling"}
    assert min(by_state["spending"]) > 50 > min(by_state["usual"])


@pytest.mark.parametrize(("late", "malformed"), [(0.0, 0.0), (0.01, 0.005), (0.1, 0.3), (0.0, 1.0), (1.0, 0.0)])
def test_as_many_are_late_and_malformed_as_was_declared(late: float, malformed: float) -> None:
    number = 4000
    made = records(changed(RIGS, late, malformed, count=50), number)
    for share, found in ((late, sum(r.is_late for r in made)), (malformed, sum(r.flaw is not None for r in made))):
        spread = (number * share * (1 - share)) ** 0.5
        assert abs(found - number * share) <= 4 * spread


def test_late_records_are_minutes_late_and_the_others_are_not() -> None:
    for turn, record in enumerate(records(changed(RIGS, late=0.2, count=50), 2000)):
        age_s = MONDAY_S + turn / 1000 - record.event_time_s
        assert (55 <= age_s <= 301) if record.is_late else abs(age_s) < 1


def test_a_duplicate_is_the_record_before_it() -> None:
    made = records(CARDS, 3000)
    pairs = [(before, after) for before, after in pairwise(made) if after.is_duplicate]
    assert 200 < len(pairs) < 400
    assert all((before.key, before.value) == (after.key, after.value) for before, after in pairs)


def test_every_malformed_record_is_malformed_in_its_own_way() -> None:
    needed = {"event_ID", "hcid", "timestamp", "sensor_readings"}
    made = records(changed(RIGS, malformed=1.0, count=50), 2500)
    assert {record.flaw for record in made} == {kind.name for kind in RIGS.flaws.kinds}
    for record in made:
        value = record.value
        match record.flaw:
            case "truncated":
                with pytest.raises(ValueError, match=r"."):
                    json.loads(value or b"")
            case "blob":
                assert len(value or b"") == 1_000_000
            case "no value":
                assert value is None
            case "missing field":
                assert len(needed - set(json.loads(value or b""))) == 1
            case "null":
                assert [name for name in needed if json.loads(value or b"")[name] is None]
            case "wrong type":
                assert not isinstance(json.loads(value or b"")["sensor_readings"]["pressure"], int | float)


def test_a_silent_pump_lets_the_others_speak() -> None:
    heard: dict[int, list[float]] = {}
    for record in records(changed(RIGS, every_s=180, count=8), 8000, rate=10):
        heard.setdefault(record.entity_id, []).append(record.event_time_s)
    assert len(heard) == 8
    longest = max(b - a for times in heard.values() for a, b in pairwise(times))
    assert 40 < longest < 400
