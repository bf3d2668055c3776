"""A broker that was migrated to a cluster does not start as a single broker with empty metadata."""

import pytest

from odradek.log.log_directory import LogDirectoryError
from odradek.metadata.embedded_store import FILE_NAME, MIGRATED_SUFFIX
from tests.handlers.brokers import SimulatedBroker


def test_a_migrated_directory_needs_zookeeper() -> None:
    broker = SimulatedBroker()
    broker.run(broker.node.stop())
    disk = broker.host.disk
    disk.open(f"/data/{FILE_NAME}{MIGRATED_SUFFIX}", create=True).close()
    if disk.exists(f"/data/{FILE_NAME}"):
        disk.remove(f"/data/{FILE_NAME}")
    with pytest.raises(LogDirectoryError, match=r"zookeeper\.connect is not set.*/data was migrated.*set zookeeper"):
        broker.run(broker._start())
    broker.close()
