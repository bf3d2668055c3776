"""One entry of log.dirs: whose it is, how it was left, and that no name leads out of it."""

import uuid
from pathlib import Path

import pytest

from odradek.host.host import real_host
from odradek.log.log_directory import LogDirectory, LogDirectoryError, decode_uuid, encode_uuid, read_meta_properties
from tests.simulation.simulated_host import Simulation

PATH = "/data/logs"
TOPIC_ID = uuid.UUID(int=0x1234567890ABCDEF1234567890ABCDEF)


def open_directory(simulation: Simulation, cluster_id: str = "cluster", node_id: int = 1) -> LogDirectory:
    return LogDirectory.open(PATH, simulation.host, cluster_id=cluster_id, node_id=node_id)


def test_meta_properties_are_kafkas_and_stay(simulation: Simulation) -> None:
    assert read_meta_properties(PATH, simulation.host) is None
    directory = open_directory(simulation)
    properties = directory.meta_properties
    assert properties is not None
    text = simulation.disk.read_file(f"{PATH}/meta.properties").decode()
    assert text.splitlines() == [
        "cluster.id=cluster",
        f"directory.id={encode_uuid(properties.directory_id)}",
        "node.id=1",
        "version=1",
        text.splitlines()[-1],
    ]
    assert text.splitlines()[-1].startswith("#crc32c=")
    simulation.crash()
    assert open_directory(simulation).meta_properties == properties
    assert read_meta_properties(PATH, simulation.host) == properties


@pytest.mark.parametrize(("cluster_id", "node_id", "says"), [("other", 1, "cluster"), ("cluster", 2, "node.id")])
def test_another_brokers_directory_is_refused(simulation: Simulation, cluster_id: str, node_id: int, says: str) -> None:
    open_directory(simulation).close(is_clean=True)
    with pytest.raises(LogDirectoryError, match=says):
        open_directory(simulation, cluster_id, node_id)
    open_directory(simulation)  # the lock was given back


@pytest.mark.parametrize("text", ["version=2\n", "version=1\nnode.id=x\ncluster.id=c\ndirectory.id=d\n", "x"])
def test_meta_properties_that_make_no_sense_are_an_error(simulation: Simulation, text: str) -> None:
    simulation.disk.make_directories(PATH)
    simulation.disk.replace_file(f"{PATH}/meta.properties", text.encode())
    with pytest.raises(LogDirectoryError, match=r"meta\.properties"):
        open_directory(simulation)


def test_a_directory_has_one_broker_at_a_time(simulation: Simulation) -> None:
    directory = open_directory(simulation)
    with pytest.raises(LogDirectoryError, match="another broker"):
        open_directory(simulation)
    directory.close(is_clean=True)
    open_directory(simulation)


def test_only_a_clean_shutdown_leaves_its_mark(simulation: Simulation) -> None:
    directory = open_directory(simulation)
    assert not directory.was_cleanly_shut_down
    directory.close(is_clean=True)
    simulation.crash()
    assert simulation.disk.exists(f"{PATH}/.kafka_cleanshutdown")
    directory = open_directory(simulation)
    assert directory.was_cleanly_shut_down
    simulation.crash()
    directory = open_directory(simulation)
    assert not directory.was_cleanly_shut_down
    directory.close(is_clean=False)
    assert not open_directory(simulation).was_cleanly_shut_down


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a\0", "a b", "ü", "x" * 250, "a\n", "../a", "a:b"])
def test_a_name_is_not_a_path(simulation: Simulation, topic: str) -> None:
    directory = open_directory(simulation)
    with pytest.raises(ValueError, match="not a partition's name"):
        directory.partition_directory(topic, 0)
    with pytest.raises(ValueError, match="not a partition's name"):
        directory.schedule_delete(topic, 0)


def test_a_negative_partition_is_no_name(simulation: Simulation) -> None:
    with pytest.raises(ValueError, match="not a partition's name"):
        open_directory(simulation).partition_directory("a", -1)


def test_partitions_are_found_again(simulation: Simulation) -> None:
    directory = open_directory(simulation)
    names = {("a", 0), ("a-1", 7), ("x" * 249, 3), ("a.b_c", 10)}
    for topic, index in names:
        simulation.disk.make_directories(directory.partition_directory(topic, index))
    simulation.disk.make_directories(f"{PATH}/no partition")
    found = directory.partitions()
    assert found.keys() == names
    assert found["a-1", 7] == directory.partition_directory("a-1", 7)


def test_partition_metadata_is_kafkas(simulation: Simulation) -> None:
    directory = open_directory(simulation)
    path = directory.partition_directory("a", 0)
    simulation.disk.make_directories(path)
    assert directory.read_partition_metadata("a", 0) is None
    directory.write_partition_metadata("a", 0, TOPIC_ID)
    assert simulation.disk.read_file(f"{path}/partition.metadata") == (
        b"version: 0\ntopic_id: EjRWeJCrze8SNFZ4kKvN7w\ncrc32c: 3945ebfc\n"
    )
    assert directory.read_partition_metadata("a", 0) == TOPIC_ID
    for torn in (
        b"",
        b"version: 0\n",
        b"version: 0\ntopic_id: EjRW\n",
        b"version: 1\ntopic_id: EjRWeJCrze8SNFZ4kKvN7w\n",
        b"version: 0\ntopic_id: EjRWeJCrze8SNFZ4kKvN7w\ncrc32c: 00000000\n",
    ):
        simulation.disk.replace_file(f"{path}/partition.metadata", torn)
        assert directory.read_partition_metadata("a", 0) is None


def test_a_deleted_partition_is_renamed_and_known_after_a_restart(simulation: Simulation) -> None:
    directory = open_directory(simulation)
    topic = "x" * 249
    simulation.disk.make_directories(directory.partition_directory(topic, 5))
    doomed = directory.schedule_delete(topic, 5)
    assert doomed.endswith("-delete")
    assert len(doomed.rpartition("/")[2]) <= 255
    assert directory.partitions() == {}
    assert simulation.disk.exists(doomed)
    directory.close(is_clean=True)
    assert open_directory(simulation).scheduled_deletes == [doomed]


def test_a_partition_set_aside_stays_for_people(simulation: Simulation) -> None:
    directory = open_directory(simulation)
    simulation.disk.make_directories(directory.partition_directory("a", 5))
    stray = directory.set_aside("a", 5)
    assert stray.endswith("-stray")
    directory.close(is_clean=True)
    assert open_directory(simulation).partitions() == {}
    assert simulation.disk.exists(stray)


def test_uuids_are_written_as_kafka_does() -> None:
    assert decode_uuid(encode_uuid(TOPIC_ID)) == TOPIC_ID
    with pytest.raises(ValueError, match="bytes"):
        decode_uuid("EjRW")


@pytest.mark.parametrize("path", ["/a/b/c", "/a//b/c/", "a/b/c"])
def test_every_level_of_a_new_directory_is_durable(path: str) -> None:
    for seed in range(30):
        simulation = Simulation(seed)
        opened = LogDirectory.open(path, simulation.host, cluster_id="cluster", node_id=1)
        simulation.crash()
        assert read_meta_properties(path, simulation.host) == opened.meta_properties
        simulation.close()


def test_plain_files_are_no_partitions(simulation: Simulation) -> None:
    directory = open_directory(simulation)
    simulation.disk.make_directories(directory.partition_directory("a", 0))
    simulation.disk.replace_file(f"{PATH}/notes-2", b"mine")
    simulation.disk.replace_file(f"{PATH}/what-to-delete", b"mine too")
    assert directory.partitions().keys() == {("a", 0)}
    directory.close(is_clean=True)
    reopened = open_directory(simulation)
    assert reopened.partitions().keys() == {("a", 0)}
    assert reopened.scheduled_deletes == []


def test_an_open_directory_is_that_of_its_broker_alone(tmp_path: Path) -> None:
    """Also if an older version has created it."""
    host = real_host()
    path = tmp_path / "logs"
    (path / "pump-0").mkdir(parents=True)
    (path / "meta.properties.bak").touch()
    for each in (path, *path.iterdir()):
        each.chmod(0o755 if each.is_dir() else 0o644)
    LogDirectory.open(str(path), host, cluster_id="cluster", node_id=1).close(is_clean=True)
    host.workers.close()
    assert [each for each in (path, *path.iterdir()) if each.stat().st_mode & 0o077] == []
