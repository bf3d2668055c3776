"""Everything nondeterministic (clock, disk, network, randomness, threads, processes, ZooKeeper) in one value, which the
composition root creates and passes down."""

from collections.abc import Callable
from dataclasses import dataclass

from odradek.host.background import Background, BackgroundProcess
from odradek.host.clock import Clock, SystemClock
from odradek.host.connecting import Network, SystemNetwork
from odradek.host.disk import Disk
from odradek.host.entropy import Entropy, SystemEntropy
from odradek.host.kazoo_session import connect
from odradek.host.real_disk import RealDisk
from odradek.host.workers import ThreadWorkers, Workers
from odradek.host.zookeeper import ZooKeeperSession, ZooKeeperSettings


@dataclass(frozen=True, slots=True)
class Host:
    clock: Clock
    disk: Disk
    entropy: Entropy
    workers: Workers
    background: Background
    network: Network
    connect_zookeeper: Callable[[ZooKeeperSettings], ZooKeeperSession] = connect


def real_host() -> Host:
    return Host(
        clock=SystemClock(),
        disk=RealDisk(),
        entropy=SystemEntropy(),
        workers=ThreadWorkers(),
        background=BackgroundProcess(),
        network=SystemNetwork(),
    )
