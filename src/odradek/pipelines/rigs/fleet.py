"""A fleet of pumps and its records: most are valid and current, some are minutes late, some invalid.

Pure: the caller passes the time and gets the record that the fleet sends at that time. The same settings and times give
the same records.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from odradek.pipelines.rigs.flaws import Flaw, draw_flaw, spoil
from odradek.pipelines.rigs.pump import Pump, Readings


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """Settings of a fleet. Shares are of all records; late ones are sent `least_late_s` to `most_late_s` late."""

    pumps: int = 300
    seed: int = 7
    late_share: float = 0.01
    broken_share: float = 0.005
    failures_per_pump_hour: float = 1.0
    least_late_s: float = 60.0
    most_late_s: float = 300.0


@dataclass(frozen=True, slots=True)
class RigRecord:
    """A record for the topic, and the simulator's facts about it. `event_time_s` is since the epoch."""

    key: bytes
    value: bytes | None
    pump_id: int
    event_id: int
    event_time_s: float
    is_late: bool = False
    flaw: Flaw | None = None


class Fleet:
    def __init__(self, settings: FleetSettings) -> None:
        if settings.pumps < 1 or settings.late_share + settings.broken_share > 1:
            raise ValueError("a fleet needs at least one pump, and shares whose sum is at most 1")
        self.settings = settings
        self.pumps = [
            Pump(pump_id, settings.seed, settings.failures_per_pump_hour) for pump_id in range(1, settings.pumps + 1)
        ]
        self._chance = Random(f"{settings.seed}/fleet")
        self._round: list[Pump] = []  # pumps that have not reported in this round, in a random order
        self._event_id = 0

    def next_record(self, time_s: float) -> RigRecord | None:
        """The record that is sent at this time; None if every pump is silent."""
        pump = self._next_pump(time_s)
        if pump is None:
            return None
        self._event_id += 1
        settings, dice = self.settings, self._chance.random()
        is_late = dice < settings.late_share
        event_time_s = time_s - is_late * self._chance.uniform(settings.least_late_s, settings.most_late_s)
        value: bytes | None = encoded(self._event_id, pump.pump_id, event_time_s, pump.readings(event_time_s))
        flaw = None
        if settings.late_share <= dice < settings.late_share + settings.broken_share:
            flaw = draw_flaw(self._chance)
            value = spoil(value or b"", flaw, self._chance)
        key = str(pump.pump_id).encode()
        return RigRecord(key, value, pump.pump_id, self._event_id, event_time_s, is_late, flaw)

    def _next_pump(self, time_s: float) -> Pump | None:
        """The next pump to report: each reports once per round, silent ones are skipped."""
        for _ in range(2 * len(self.pumps)):
            if not self._round:
                self._round = self._chance.sample(self.pumps, len(self.pumps))
            pump = self._round.pop()
            pump.advance(time_s)
            if not pump.is_silent(time_s):
                return pump
        return None


def encoded(event_id: int, pump_id: int, time_s: float, readings: Readings) -> bytes:
    """The record in its JSON format."""
    timestamp = datetime.fromtimestamp(time_s, UTC)
    return (
        f'{{"event_ID":{event_id},"hcid":{pump_id},"timestamp":"{timestamp:%Y-%m-%d %H:%M:%S}",'
        f'"production":{readings.production},"sensor_readings":{{"pressure":{readings.pressure},'
        f'"temperature":{readings.temperature},"oil_percentage":{readings.oil_percentage}}},'
        f'"injection_vol":{readings.injection_vol}}}'
    ).encode()
