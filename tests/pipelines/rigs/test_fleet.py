"""The fleet is reproducible and plausible, with the configured shares of faults."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipelines.rigs.failures import FailureKind
from odradek.pipelines.rigs.flaws import BLOB_BYTES, NEEDED, Flaw
from odradek.pipelines.rigs.fleet import Fleet, FleetSettings, RigRecord, encoded
from odradek.pipelines.rigs.pump import Readings

MONDAY_S = 1_800_000_000.0


def records(fleet: Fleet, number: int, *, rate: float = 1000, start_s: float = MONDAY_S) -> list[RigRecord]:
    made = (fleet.next_record(start_s + turn / rate) for turn in count())
    return [record for record, _ in zip((record for record in made if record is not None), range(number), strict=False)]


def test_a_record_looks_as_the_field_sends_it() -> None:
    assert encoded(122, 63, 1_420_070_402, Readings(47, 107, 30, 18, 15367)) == (
        b'{"event_ID":122,"hcid":63,"timestamp":"2015-01-01 00:00:02","production":47,'
        b'"sensor_readings":{"pressure":107,"temperature":30,"oil_percentage":18},"injection_vol":15367}'
    )


@given(seed=st.integers(), pumps=st.integers(1, 40), gaps=st.lists(st.floats(0, 3600), min_size=1, max_size=80))
@settings(max_examples=50, deadline=None)
def test_the_same_seed_and_the_same_clock_give_the_same_records(seed: int, pumps: int, gaps: list[float]) -> None:
    chosen = FleetSettings(pumps, seed, late_share=0.2, broken_share=0.2, failures_per_pump_hour=5)

    def run() -> list[RigRecord | None]:
        fleet, time_s = Fleet(chosen), MONDAY_S
        made = []
        for gap in gaps:
            time_s += gap
            made.append(fleet.next_record(time_s))
        return made

    assert run() == run()


def test_another_seed_gives_other_records() -> None:
    assert records(Fleet(FleetSettings(seed=1)), 100) != records(Fleet(FleetSettings(seed=2)), 100)


def test_a_larger_fleet_leaves_the_pumps_that_it_had_as_they_are() -> None:
    small, large = (Fleet(FleetSettings(pumps=pumps)) for pumps in (3, 30))
    for fleet in (small, large):
        for pump in fleet.pumps[:3]:
            pump.advance(MONDAY_S)
    assert [pump.readings(MONDAY_S) for pump in small.pumps] == [pump.readings(MONDAY_S) for pump in large.pumps[:3]]


@given(
    seed=st.integers(),
    start_s=st.floats(0, 4e9),
    gaps=st.lists(st.floats(-100, 1e6), min_size=1, max_size=60),
    failures=st.floats(0, 20),
)
@settings(max_examples=60, deadline=None)
def test_readings_are_plausible_whatever_the_clock_does(
    seed: int, start_s: float, gaps: list[float], failures: float
) -> None:
    fleet = Fleet(FleetSettings(5, seed, late_share=0.3, broken_share=0, failures_per_pump_hour=failures))
    time_s = start_s + 400
    for gap in gaps:
        time_s = max(400.0, time_s + gap)
        record = fleet.next_record(time_s)
        if record is None:
            continue
        row = json.loads(record.value or b"")
        assert list(row) == [
            "event_ID", "hcid", "timestamp", "production", "sensor_readings", "injection_vol"
        ]  # fmt: skip
        assert 1 <= row["hcid"] <= 5
        assert record.key == str(row["hcid"]).encode()
        assert 0 <= row["production"] <= 100
        assert 0 <= row["sensor_readings"]["pressure"] <= 300
        assert -20 <= row["sensor_readings"]["temperature"] <= 150
        assert 1 <= row["sensor_readings"]["oil_percentage"] <= 60
        assert 0 <= row["injection_vol"] <= 30_000


@given(seed=st.integers())
@settings(max_examples=10, deadline=None)
def test_healthy_pumps_stay_below_every_limit_and_move(seed: int) -> None:
    fleet = Fleet(FleetSettings(10, seed, late_share=0, broken_share=0, failures_per_pump_hour=0))
    rows = [json.loads(record.value or b"") for record in records(fleet, 3000, rate=0.1)]
    pressure = [row["sensor_readings"]["pressure"] for row in rows]
    temperature = [row["sensor_readings"]["temperature"] for row in rows]
    assert 65 < min(pressure) < max(pressure) < 145
    assert 10 < min(temperature) < max(temperature) < 60
    of_one = {row["sensor_readings"]["pressure"] for row in rows if row["hcid"] == 1}
    assert len(of_one) > 3


@given(seed=st.integers())
@settings(max_examples=8, deadline=None)
def test_every_kind_of_failure_comes_within_sixty_pump_hours(seed: int) -> None:
    fleet = Fleet(FleetSettings(60, seed))
    seen: dict[FailureKind, float] = {}
    reports: Counter[int] = Counter()
    for second in range(0, 3600, 5):
        for pump in fleet.pumps:
            pump.advance(MONDAY_S + second)
            if pump.failure is not None:
                kind = pump.failure.kind
                readings = pump.readings(MONDAY_S + second)
                value = {FailureKind.PRESSURE_CREEP: readings.pressure, FailureKind.OVERHEATING: readings.temperature}
                seen[kind] = max(seen.get(kind, 0), value.get(kind, 0))
            reports[pump.pump_id] += pump.is_silent(MONDAY_S + second)
    assert set(seen) == set(FailureKind)
    assert seen[FailureKind.PRESSURE_CREEP] > 140
    assert seen[FailureKind.OVERHEATING] > 80
    silent_s = max(reports.values()) * 5
    assert 30 < silent_s < 3000  # was silent and recovered


def test_a_failing_pump_is_well_again_after_its_repair() -> None:
    fleet = Fleet(FleetSettings(1, seed=3, late_share=0, broken_share=0, failures_per_pump_hour=4))
    (pump,) = fleet.pumps
    was_failing = []
    for second in range(4 * 3600):
        pump.advance(MONDAY_S + second)
        was_failing.append(pump.failure is not None)
    changes = sum(before != after for before, after in pairwise(was_failing))
    assert changes > 4


@pytest.mark.parametrize(("late", "broken"), [(0.0, 0.0), (0.01, 0.005), (0.1, 0.3), (0.0, 1.0), (1.0, 0.0)])
def test_as_many_are_late_and_broken_as_was_asked(late: float, broken: float) -> None:
    number = 6000
    made = records(Fleet(FleetSettings(50, late_share=late, broken_share=broken)), number)
    for share, found in ((late, sum(r.is_late for r in made)), (broken, sum(r.flaw is not None for r in made))):
        spread = (number * share * (1 - share)) ** 0.5
        assert abs(found - number * share) <= 4 * spread


def test_late_records_are_minutes_late_and_the_others_are_not() -> None:
    made = records(Fleet(FleetSettings(50, late_share=0.2)), 2000)
    for turn, record in enumerate(made):
        age_s = MONDAY_S + turn / 1000 - record.event_time_s
        assert (55 <= age_s <= 301) if record.is_late else abs(age_s) < 1


def test_every_broken_record_is_broken_in_its_own_way() -> None:
    made = records(Fleet(FleetSettings(50, late_share=0, broken_share=1.0)), 3000)
    assert {record.flaw for record in made} == set(Flaw)
    for record in made:
        value = record.value
        match record.flaw:
            case Flaw.TRUNCATED:
                with pytest.raises(ValueError, match=r"."):
                    json.loads(value or b"")
            case Flaw.BLOB:
                assert len(value or b"") == BLOB_BYTES
            case Flaw.MISSING_FIELD:
                assert len(set(NEEDED) - set(json.loads(value or b""))) == 1
            case Flaw.NULL:
                assert value is None or [name for name in NEEDED if json.loads(value)[name] is None]
            case Flaw.WRONG_TYPE:
                assert not isinstance(json.loads(value or b"")["sensor_readings"]["pressure"], int | float)


def test_a_silent_pump_lets_the_others_speak() -> None:
    fleet = Fleet(FleetSettings(8, late_share=0, broken_share=0, failures_per_pump_hour=20))
    heard: dict[int, list[float]] = {}
    for record in records(fleet, 40_000, rate=10):
        heard.setdefault(record.pump_id, []).append(record.event_time_s)
    assert len(heard) == 8
    longest = max(b - a for times in heard.values() for a, b in pairwise(times))
    assert 40 < longest < 400


@pytest.mark.parametrize("wrong", [{"pumps": 0}, {"late_share": 0.6, "broken_share": 0.6}])
def test_an_impossible_fleet_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="fleet"):
        Fleet(FleetSettings(**wrong))  # type: ignore[arg-type]
