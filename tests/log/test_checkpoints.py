"""Offset checkpoints in Kafka's format."""

import pytest

from odradek.log.checkpoints import OffsetCheckpoint, decode_checkpoint
from odradek.protocol.malformed import MalformedMessage
from tests.simulation.simulated_host import Simulation


def test_a_checkpoint_is_kafkas_and_survives_a_crash(simulation: Simulation) -> None:
    checkpoint = OffsetCheckpoint(simulation.disk, "/data/recovery-point-offset-checkpoint")
    assert checkpoint.read() == {}
    offsets = {("a-topic", 0): 17, ("a-topic", 11): 2**62}
    checkpoint.write(offsets)
    simulation.crash()
    written = b"0\n3\na-topic 0 17\na-topic 11 4611686018427387904\n##crc32c 0 2590359160\n"
    assert simulation.disk.read_file(checkpoint.path) == written
    assert checkpoint.read() == offsets


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\na 1 1\n",
        b"0\n1\na 1\n",
        b"0\n1\na 1 1 1\n",
        b"0\n2\na 1 2\n##crc32c 0 1\n",
        b"0\n1\n#! 1 2\n",
    ],
)
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_checkpoint(data)
