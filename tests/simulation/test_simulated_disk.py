"""The simulated disk forgets what POSIX allows to be forgotten, and nothing else; the same seed forgets the same."""

import random

import pytest

from tests.simulation.simulated_disk import SimulatedDisk


def crash(disk: SimulatedDisk, seed: int = 0) -> None:
    disk.crash(random.Random(seed))


def test_what_was_synced_survives() -> None:
    for seed in range(50):
        disk = SimulatedDisk()
        disk.make_directories("/a/b")
        disk.sync_directory("/")
        disk.sync_directory("/a")
        file = disk.open("/a/b/file", create=True)
        file.write_at(b"synced", 0)
        file.sync()
        disk.sync_directory("/a/b")
        file.write_at(b"not", 6)
        crash(disk, seed)
        assert b"syncednot".startswith(disk.read_file("/a/b/file"))
        assert disk.read_file("/a/b/file").startswith(b"synced")


def test_unsynced_names_may_be_lost_or_not() -> None:
    def names_after(seed: int) -> tuple[str, ...]:
        disk = SimulatedDisk()
        for name in ("a", "b"):
            disk.open(f"/{name}", create=True)
        disk.rename("/a", "/c")
        crash(disk, seed)
        return tuple(disk.list_directory("/"))

    assert {names_after(seed) for seed in range(50)} == {(), ("a",), ("a", "b"), ("b", "c")}
    assert names_after(7) == names_after(7)


def test_unsynced_writes_may_be_lost_torn_or_full_of_zeros() -> None:
    found = set()
    for seed in range(2000):
        disk = SimulatedDisk()
        file = disk.open("/file", create=True)
        file.sync()
        disk.sync_directory("/")
        for number, letter in enumerate((b"a", b"b", b"c")):
            file.write_at(letter * 2, 2 * number)
        crash(disk, seed)
        found.add(disk.read_file("/file"))
    assert {b"", b"a", b"aa", b"aab", b"aabbcc", b"\0\0bbcc", b"aa\0\0cc", b"\0\0"} <= found


def test_a_replaced_file_is_the_old_or_the_new_one() -> None:
    disk = SimulatedDisk()
    disk.replace_file("/file", b"old")
    disk.replace_file("/file", b"new")
    crash(disk)
    assert disk.read_file("/file") == b"new"


def test_a_dead_process_has_no_files_and_no_locks() -> None:
    disk = SimulatedDisk()
    file = disk.open("/file", create=True)
    file.write_at(b"kept", 0)
    assert disk.lock("/lock") is not None
    assert disk.lock("/lock") is None
    disk.kill()
    with pytest.raises(OSError, match="gone"):
        file.write_at(b"lost", 0)
    assert disk.read_file("/file") == b"kept"
    lock = disk.lock("/lock")
    assert lock is not None
    lock.release()
    assert disk.lock("/lock") is not None


def test_committed_transactions_survive_and_open_ones_do_not() -> None:
    disk = SimulatedDisk()
    database = disk.open_database("/database")
    database.execute("CREATE TABLE numbers (number)")
    database.execute("INSERT INTO numbers VALUES (1)")
    database.execute("BEGIN")
    database.execute("INSERT INTO numbers VALUES (2)")
    crash(disk)
    database.close()
    assert disk.open_database("/database").execute("SELECT number FROM numbers").fetchall() == [(1,)]
    disk.dispose()


def test_a_directory_moves_with_all_that_is_in_it() -> None:
    disk = SimulatedDisk()
    disk.make_directories("/a")
    disk.replace_file("/a/file", b"x")
    disk.rename("/a", "/b")
    assert (disk.exists("/a"), disk.read_file("/b/file")) == (False, b"x")
    disk.remove_tree("/b")
    with pytest.raises(FileNotFoundError):
        disk.open("/b/file")


def test_a_simulated_file_cannot_be_sent_by_the_kernel() -> None:
    with pytest.raises(OSError, match="descriptor"):
        _ = SimulatedDisk().open("/file", create=True).descriptor


def test_what_a_failed_sync_dropped_is_seen_but_never_durable() -> None:
    disk = SimulatedDisk()
    file = disk.open("/file", create=True)
    disk.sync_directory("/")
    file.write_at(b"lost", 0)
    disk.open("/forgotten", create=True)
    disk.sync_error = OSError("no")
    for sync in (file.sync, lambda: disk.sync_directory("/")):
        with pytest.raises(OSError, match="no"):
            sync()
    disk.sync_error = None
    file.write_at(b"kept", 4)
    file.sync()
    disk.sync_directory("/")
    assert disk.read_file("/file") == b"lostkept"
    crash(disk)
    assert disk.read_file("/file") == b"\0\0\0\0kept"
    assert disk.list_directory("/") == ["file"]


def test_directories_are_reported_from_files() -> None:
    disk = SimulatedDisk()
    disk.make_directories("/directory")
    disk.open("/file", create=True)
    assert [disk.is_directory(path) for path in ("/directory", "/file", "/missing")] == [True, False, False]
