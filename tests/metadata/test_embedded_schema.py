"""Files of an earlier schema: converted in one transaction, with everything that they hold.

`files/schema-1.sqlite` was written by the last version of Odradek with that schema.
"""

import shutil
import sqlite3
import uuid
from pathlib import Path

from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata.changes import (
    ClientQuotaChanged,
    ConfigsChanged,
    ProducerIdsAllocated,
    TopicCreated,
)
from odradek.metadata.embedded_store import EmbeddedStore
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.metadata.snapshot import empty_image, image_from_changes
from odradek.metadata.store import CommitOutcome
from tests.metadata.crashing_disk import Crash, CrashingDisk
from tests.metadata.inline_host import inline_host

SCHEMA_1 = Path(__file__).parent / "files" / "schema-1.sqlite"
EXPECTED = image_from_changes(
    empty_image("AAAAAAAAAAAAAAAAAAAD6Q"),
    [
        TopicCreated(
            TopicImage(
                "orders.eu",
                uuid.UUID(int=1),
                (
                    PartitionImage(0, (3, 1), (3,), 3, 7, 9),
                    PartitionImage(1, (3, 1), (3,), 3, 0, 0),
                    PartitionImage(2, (1,), (), -1, 0, 0),
                ),
                is_internal=False,
            )
        ),
        TopicCreated(
            TopicImage(
                "__consumer_offsets", uuid.UUID(int=2), (PartitionImage(0, (3, 1), (3,), 3, 0, 0),), is_internal=True
            )
        ),
        ConfigsChanged(ConfigResourceType.TOPIC, "orders.eu", {"retention.ms": "1000", "cleanup.policy": "compact"}),
        ConfigsChanged(ConfigResourceType.BROKER, "", {"message.max.bytes": "2000"}),
        ConfigsChanged(ConfigResourceType.GROUP, "g", {"consumer.session.timeout.ms": "50000"}),
        ClientQuotaChanged(
            frozenset({("user", "ann"), ("client-id", None)}),
            {"consumer_byte_rate": 1.5, "producer_byte_rate": 2.0},
        ),
        ProducerIdsAllocated(3000),
    ],
    version=9,
)


def old_file(tmp_path: Path) -> str:
    return shutil.copy(SCHEMA_1, str(tmp_path / "metadata"))


def schema_version(path: str) -> str:
    database = sqlite3.connect(path)
    (version,) = database.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    database.close()
    return str(version)


async def test_schema_1_is_converted_with_everything_in_it(tmp_path: Path) -> None:
    path = old_file(tmp_path)
    for _ in range(2):
        store = EmbeddedStore(inline_host(), path)
        assert await store.load() == EXPECTED
        await store.close()
        assert schema_version(path) == "2"


async def test_converted_file_takes_commits(tmp_path: Path) -> None:
    store = EmbeddedStore(inline_host(), old_file(tmp_path))
    epoch = await store.claim_controller(3)
    changes = [ProducerIdsAllocated(4000)]
    assert await store.commit(changes, expected_version=9, controller_epoch=epoch) is CommitOutcome.COMMITTED
    assert await store.load() == EXPECTED.apply_all(changes)
    assert await store.changes_since(8) is None
    commits = await store.changes_since(9)
    assert commits is not None
    assert [commit.version for commit in commits] == [10]
    await store.close()


async def test_cluster_id_is_read_without_converting(tmp_path: Path) -> None:
    """A second broker on the directory asks for the cluster id before it finds the directory locked."""
    path = old_file(tmp_path)
    store = EmbeddedStore(inline_host(), path)
    assert await store.cluster_id() == EXPECTED.cluster_id
    await store.close()
    assert schema_version(path) == "1"


async def test_crash_while_converting_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = old_file(tmp_path)
    crashes = 0
    while schema_version(path) == "1":
        disk = CrashingDisk(crashes)
        try:
            assert await EmbeddedStore(inline_host(disk), path).load() == EXPECTED
        except Crash:
            crashes += 1
        disk.close_databases()
    assert crashes > 10
    store = EmbeddedStore(inline_host(), path)
    assert await store.load() == EXPECTED
    await store.close()
