"""Records of oil rigs as the field sends them: what the demo streams. Readings wander, so that they look alive."""

from __future__ import annotations

import json
import random
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RIGS = 12


def rig_records(seed: int, now: datetime | None = None) -> Iterator[tuple[bytes, bytes]]:
    """Endless pairs of key (the rig) and value (its JSON record)."""
    chance = random.Random(seed)
    rigs = chance.sample(range(1, 100), RIGS)
    pressure = {rig: chance.randint(90, 120) for rig in rigs}
    temperature = {rig: chance.randint(25, 40) for rig in rigs}
    event_id = 0
    while True:
        event_id += 1
        rig = chance.choice(rigs)
        pressure[rig] = min(160, max(60, pressure[rig] + chance.randint(-3, 3)))
        temperature[rig] = min(60, max(10, temperature[rig] + chance.randint(-1, 1)))
        record = {
            "event_ID": event_id,
            "hcid": rig,
            "timestamp": (now or datetime.now().astimezone()).strftime("%Y-%m-%d %H:%M:%S"),
            "production": chance.randint(30, 70),
            "sensor_readings": {
                "pressure": pressure[rig],
                "temperature": temperature[rig],
                "oil_percentage": chance.randint(10, 30),
            },
            "injection_vol": chance.randint(10_000, 20_000),
        }
        yield str(rig).encode(), json.dumps(record, separators=(",", ":")).encode()
