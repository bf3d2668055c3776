"""Everything nondeterministic (clock, disk, network, randomness, threads, processes, ZooKeeper) in one value, which the
composition root creates and passes down."""

from collections.abc import Callable
from pathlib import Path

from odradek.conventions.dataclass import dataclass
from odradek.host.background import Background, BackgroundProcess
from odradek.host.clock import Clock, SystemClock
from odradek.host.connecting import Network, SystemNetwork
from odradek.host.disk import Disk
from odradek.host.documents import read_document
from odradek.host.entropy import Entropy, SystemEntropy
from odradek.host.real_disk import RealDisk
from odradek.host.workers import ThreadWorkers, Workers
from odradek.host.zookeeper import ZooKeeperSession, ZooKeeperSettings


def connect_zookeeper(settings: ZooKeeperSettings) -> ZooKeeperSession:
    from odradek.host.kazoo_session import connect  # noqa: PLC0415 - a broker without a cluster needs none

    return connect(settings)


@dataclass(frozen=True, slots=True)
class Host:
    clock: Clock
    disk: Disk
    entropy: Entropy
    workers: Workers
    background: Background
    network: Network
    boot_id: str = ""
    """The machine's boot id: when it changes, the machine has restarted and lost unsynced writes. Empty if not
    known."""
    connect_zookeeper: Callable[[ZooKeeperSettings], ZooKeeperSession] = connect_zookeeper
    read_document: Callable[[str], bytes] = read_document


BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def read_boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def real_host() -> Host:
    return Host(
        clock=SystemClock(),
        disk=RealDisk(),
        entropy=SystemEntropy(),
        workers=ThreadWorkers(),
        background=BackgroundProcess(),
        network=SystemNetwork(),
        boot_id=read_boot_id(),
    )
