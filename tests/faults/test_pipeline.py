"""An exactly-once pipeline on Spark goes on when the leader of its topic, or the coordinator of its transactions, is
killed: each record is in each output once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.local.running_cluster import RunningCluster
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.commands import run_odradek
from tests.faults.report import progress
from tests.pipelines.kills.scene import Scene
from tests.pipelines.kills.test_kills import BATCHES, EXACTLY_ONCE, LIMIT, check_exactly_once
from tests.waiting import eventually
from tests.wire import WireClient

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.timeout(900)]

SEED = 15
WAIT_S = 60.0
PROPERTIES: dict[str, str | int] = {"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}


def leader(cluster: RunningCluster, topic: str) -> int:
    """Of the first partition."""
    with WireClient(cluster.brokers[1].port) as client:
        response = client.call(MetadataRequest(topics=None), MetadataResponse, 12)
    return next(each.partitions[0].leader_id for each in response.topics if each.name == topic)


def coordinator(cluster: RunningCluster) -> int:
    """Of a transaction of the pipeline."""
    command = ("transaction", "list", "--format", "json", "-b", cluster.bootstrap_servers)
    rows = eventually(lambda: run_odradek(*command).rows, "a transaction of the pipeline", seconds=WAIT_S)
    return int(rows[-1]["coordinator"])


@pytest.mark.parametrize("victim", ["leader", "coordinator"])
def test_a_pipeline_goes_on_without_a_broker(victim: str, tmp_path: Path) -> None:
    with RunningCluster(3, PROPERTIES, has_network=False) as cluster:
        definition = EXACTLY_ONCE.replace("LIMIT", str(LIMIT))
        scene = Scene(tmp_path, cluster.bootstrap_servers, definition, SEED, replication_factor=3)
        scene.send(2 * BATCHES * LIMIT)

        def kill_broker() -> None:
            killed = leader(cluster, scene.topic("in")) if victim == "leader" else coordinator(cluster)
            progress(f"{victim}: broker {killed} is killed")
            cluster.kill(killed)

        scene.finish(kill_broker)
        check_exactly_once(scene)
        progress(f"{victim}: {scene.sent} records, each in each output once")
