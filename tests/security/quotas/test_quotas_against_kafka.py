"""Our quotas throttle for as long as Apache Kafka's quota managers do, event by event."""

import json
import os
from pathlib import Path

import pytest

from tests.jvm.json_session import JsonSession
from tests.security.quotas.quota_cases import draw_case, replay

RECORDED = Path(__file__).parent / "recorded_throttles.json"
RECORDED_CASES = 60
CASES = int(os.environ.get("QUOTA_CASES", "2000"))
ROUNDING_MS = 1


def _assert_same(seed: int, expected: list[int]) -> int:
    """The number of compared throttle times. A sum in another order may round to the other millisecond."""
    ours = replay(draw_case(seed))
    differences = [
        (place, mine, theirs)
        for place, (mine, theirs) in enumerate(zip(ours, expected, strict=True))
        if abs(mine - theirs) > ROUNDING_MS
    ]
    assert not differences, f"seed {seed}: {differences[:5]}"
    return sum(each > 0 for each in expected)


def test_throttle_times_are_the_recorded_ones_of_kafka() -> None:
    recorded = json.loads(RECORDED.read_text())
    assert len(recorded) == RECORDED_CASES
    assert sum(_assert_same(seed, expected) for seed, expected in enumerate(recorded)) > 500


@pytest.mark.oracle
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("jvm")
def test_throttle_times_are_those_of_kafka(pytestconfig: pytest.Config) -> None:
    with JsonSession("odradek.QuotaSession") as kafka:
        if pytestconfig.getoption("--update"):
            rows = [kafka.call(draw_case(seed))["throttles"] for seed in range(RECORDED_CASES)]
            RECORDED.write_text("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")
        throttled = sum(_assert_same(seed, kafka.call(draw_case(seed))["throttles"]) for seed in range(CASES))
    print(f"{CASES} sequences of events, {throttled} of them throttled, 0 differences")
