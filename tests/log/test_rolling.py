"""Batches that a follower appends together begin the same segments as batches that are appended one by one."""

import pytest

from odradek.log.log_config import LogConfig
from odradek.protocol.errors import ErrorCode
from tests.log.batches import NOW_MS, append, make_batch, open_log, read_all
from tests.simulation.simulated_host import Simulation


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(segment_bytes=350),
        LogConfig(segment_index_bytes=48, index_interval_bytes=0),
        LogConfig(segment_ms=4),
        LogConfig(),
    ],
)
@pytest.mark.parametrize("timestamp_step", [0, 1])
def test_runs_end_where_segments_roll(simulation: Simulation, config: LogConfig, timestamp_step: int) -> None:
    leader, follower = (open_log(simulation.host, f"/data/{name}-0", config) for name in ("leader", "follower"))
    for number in range(30):
        append(leader, make_batch([b"x" * 30], timestamps=[NOW_MS + timestamp_step * number]))
    result = follower.append_as_follower(memoryview(b"".join(read_all(leader))))
    assert (result.error, result.batch_count) == (ErrorCode.NONE, 30)
    base_offsets = [segment.base_offset for segment in leader.segments]
    assert [segment.base_offset for segment in follower.segments] == base_offsets
    is_time_roll = config.segment_ms == 4
    assert (len(base_offsets) > 1) == (config != LogConfig() and not (is_time_roll and timestamp_step == 0))
