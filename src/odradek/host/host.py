"""Everything nondeterministic (clock, disk, network, randomness, threads, processes) in one value, which the
composition root creates and passes down."""

from dataclasses import dataclass

from odradek.host.background import Background, BackgroundProcess
from odradek.host.clock import Clock, SystemClock
from odradek.host.connecting import Network, SystemNetwork
from odradek.host.disk import Disk
from odradek.host.entropy import Entropy, SystemEntropy
from odradek.host.real_disk import RealDisk
from odradek.host.workers import ThreadWorkers, Workers


@dataclass(frozen=True, slots=True)
class Host:
    clock: Clock
    disk: Disk
    entropy: Entropy
    workers: Workers
    background: Background
    network: Network


def real_host() -> Host:
    return Host(
        clock=SystemClock(),
        disk=RealDisk(),
        entropy=SystemEntropy(),
        workers=ThreadWorkers(),
        background=BackgroundProcess(),
        network=SystemNetwork(),
    )
